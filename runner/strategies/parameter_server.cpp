#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>

#include <cstddef>
#include <deque>
#include <exception>
#include <utility>

#include "runner/measure/clock.h"
#include "runner/strategies/server.h"
#include "runner/strategies/strategy.h"
#include "sim/core/error.h"
#include "sim/workload/sharding.h"

namespace lockstep::runner {

namespace {

/// What this worker exchanges with one server. A GPU's gradients and parameters pass through pinned
/// host memory.
struct Channel {
  Channel(PointToPoint& group, int rank, std::int64_t floats, bool pinned)
      : server(rank),
        push(floats, pinned),
        pull(floats, pinned),
        push_box(push.mailbox(group, ServerTag::push)),
        pull_box(pull.mailbox(group, ServerTag::reply)) {}
  int server;
  ShardMessage push, pull;
  std::unique_ptr<Mailbox> push_box, pull_box;
  std::int64_t version = 0;  ///< of the parameters here
  Moment launch = 0, done = 0;
};

/// After backward the gradients of each shard go to its server, all at once, and the step ends when
/// all servers have sent their parameters back. The servers hold the optimizer and its state.
///
/// Synchronous, the servers add up the gradients of all workers: backward has started from 1/n, so
/// that the sum is the mean. Else each gradient is an update of its own.
class ParameterServer final : public Strategy {
 public:
  ParameterServer(const StrategyOptions& options, Model& model, Communicator& communicator,
                  Device& device, PointToPoint& group);
  ~ParameterServer() override;
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;

  std::string kind() const override { return "parameter_server"; }
  double loss_weight() const override { return synchronous_ ? 1.0 / communicator_.size() : 1.0; }
  void before_optimizer() override;
  const std::vector<at::Tensor>& gradients() const override { return gradients_; }
  void after_optimizer() override { gradients_.clear(); }
  bool updates_parameters() const override { return true; }
  std::vector<BucketMoments> take_buckets() override;
  std::vector<ServerExchange> take_exchanges() override { return std::exchange(exchanges_, {}); }

 private:
  void add_channel(const std::vector<int>& shard);
  void begin(Channel& channel, const StrategyOptions& options);
  void pack();
  void exchange();
  void unpack();

  Model& model_;
  Communicator& communicator_;
  Device& device_;
  PointToPoint& group_;
  bool synchronous_;
  std::deque<Channel> channels_;  ///< by server
  // By server and parameter, one behind the other.
  std::vector<int> order_;
  std::vector<at::Tensor> pushed_, pulled_;  ///< views of the messages
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> gradients_;  ///< of this step, in that order
  std::vector<ServerExchange> exchanges_;
  std::size_t ready_ = 0;  ///< stamp: the end of backward
};

ParameterServer::ParameterServer(const StrategyOptions& options, Model& model,
                                 Communicator& communicator, Device& device, PointToPoint& group)
    : model_(model),
      communicator_(communicator),
      device_(device),
      group_(group),
      synchronous_(options.staleness == 0) {
  LOCKSTEP_ASSERT(group.size() == communicator.size() + options.servers,
                  "servers are the ranks behind the workers");
  std::vector<Bytes> sizes;
  for (const at::Tensor& parameter : model.parameters()) {
    LOCKSTEP_ASSERT(parameter.scalar_type() == at::kFloat, "servers hold floats");
    sizes.push_back({static_cast<std::int64_t>(parameter.nbytes())});
  }
  const auto shards = shard_parameters(sizes, options.servers);
  share_state(model, communicator);
  for (const std::vector<int>& shard : shards) add_channel(shard);
  if (communicator.rank() > 0) return;
  const at::NoGradGuard no_grad;
  at::_foreach_copy_(pushed_, parameters_);
  device.synchronize();
  for (Channel& channel : channels_) begin(channel, options);
}

void ParameterServer::add_channel(const std::vector<int>& shard) {
  const auto parameter = [this](int index) {
    return model_.parameters()[static_cast<std::size_t>(index)].detach();
  };
  std::int64_t floats = 0;
  for (const int index : shard) floats += parameter(index).numel();
  const int rank = communicator_.size() + static_cast<int>(channels_.size());
  const Channel& channel = channels_.emplace_back(group_, rank, floats, device_.torch().is_cuda());
  std::int64_t offset = 0;
  for (const int index : shard) {
    const at::Tensor here = parameter(index);
    const auto part = [&](const ShardMessage& message) {
      return message.floats().narrow(0, offset, here.numel()).view(here.sizes());
    };
    order_.push_back(index);
    parameters_.push_back(here);
    pushed_.push_back(part(channel.push));
    pulled_.push_back(part(channel.pull));
    offset += here.numel();
  }
}

/// Its shard is in the message for it.
void ParameterServer::begin(Channel& channel, const StrategyOptions& options) {
  order_server(group_, channel.server,
               {.what = ServerOrder::What::train,
                .floats = channel.push.floats().numel(),
                .workers = communicator_.size(),
                .staleness = options.staleness.value_or(-1)});
  const auto initial = channel.push.mailbox(group_, ServerTag::initial);
  initial->send(channel.server);
  initial->wait_sent();
}

ParameterServer::~ParameterServer() {
  try {
    for (Channel& channel : channels_) {
      channel.push.set_number(0, 1);
      channel.push_box->send(channel.server);
    }
    for (Channel& channel : channels_) channel.push_box->wait_sent();
  } catch (const std::exception&) {
    return;  // a server is gone, and with it what there was to close
  }
}

void ParameterServer::before_optimizer() {
  ready_ = device_.stamp();
  pack();
  exchange();
  unpack();
}

void ParameterServer::pack() {
  const at::NoGradGuard no_grad;
  gradients_.clear();
  for (const int index : order_) {
    gradients_.push_back(model_.parameters()[static_cast<std::size_t>(index)].grad());
  }
  at::_foreach_copy_(pushed_, gradients_, /*non_blocking=*/true);
  device_.synchronize();
}

void ParameterServer::exchange() {
  for (Channel& channel : channels_) {
    channel.pull_box->receive(channel.server);
    channel.launch = host_now();
    channel.push_box->send(channel.server);
  }
  for (Channel& channel : channels_) {
    channel.push_box->wait_sent();
    channel.pull_box->wait_received();
    channel.done = host_now();
    const Bytes shard{static_cast<std::int64_t>(channel.push.floats().nbytes())};
    exchanges_.push_back({.server = channel.server - communicator_.size(),
                          .computed_on = channel.version,
                          .applied_at = channel.pull.number(0),
                          .received = channel.pull.number(1),
                          .out = shard,
                          .in = shard});
    channel.version = channel.pull.number(1);
  }
}

void ParameterServer::unpack() {
  const at::NoGradGuard no_grad;
  at::_foreach_copy_(parameters_, pulled_, /*non_blocking=*/true);
  device_.synchronize();  // the next message comes into the same memory
}

std::vector<BucketMoments> ParameterServer::take_buckets() {
  std::vector<BucketMoments> moments;
  for (const Channel& channel : channels_) {
    moments.push_back({.bytes = {static_cast<std::int64_t>(channel.push.floats().nbytes())},
                       .ready = device_.moment(ready_),
                       .launch = channel.launch,
                       .done = channel.done});
  }
  return moments;
}

}  // namespace

std::unique_ptr<Strategy> make_parameter_server(const StrategyOptions& options, Model& model,
                                                Communicator& communicator, Device& device,
                                                PointToPoint& group) {
  return std::make_unique<ParameterServer>(options, model, communicator, device, group);
}

}  // namespace lockstep::runner
