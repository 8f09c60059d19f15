#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty.h>

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

/// What this worker exchanges with one server. A GPU's gradients are put side by side there and
/// pass through pinned host memory, one copy a message; its parameters come back the same way.
struct Channel {
  Channel(PointToPoint& group, int rank, std::int64_t floats, c10::Device device)
      : server(rank),
        push(floats, device.is_cuda()),
        pull(floats, device.is_cuda()),
        staged_push(staged(push, device)),
        staged_pull(staged(pull, device)),
        push_box(push.mailbox(group, ServerTag::push)),
        pull_box(pull.mailbox(group, ServerTag::reply)) {}
  int server;
  ShardMessage push, pull;
  at::Tensor staged_push, staged_pull;  ///< on a GPU; on cores the messages themselves
  std::unique_ptr<Mailbox> push_box, pull_box;
  std::int64_t version = 0;     ///< of the parameters here
  Moment launch = 0, done = 0;  ///< by the host's clock

 private:
  static at::Tensor staged(const ShardMessage& message, c10::Device device) {
    if (device.is_cpu()) return message.floats();
    return at::empty({message.floats().numel()}, at::TensorOptions(device).dtype(at::kFloat));
  }
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
  void stage_out();
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
  std::vector<at::Tensor> pushed_, pulled_;  ///< views of what is staged
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> gradients_;  ///< of this step, in that order
  std::vector<ServerExchange> exchanges_;
  std::size_t ready_ = 0;   ///< stamp: the end of backward
  std::size_t packed_ = 0;  ///< stamp: the messages are complete
  Moment packed_at_ = 0;    ///< the same by the host's clock
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
  stage_out();
  for (Channel& channel : channels_) begin(channel, options);
}

void ParameterServer::add_channel(const std::vector<int>& shard) {
  const auto parameter = [this](int index) {
    return model_.parameters()[static_cast<std::size_t>(index)].detach();
  };
  std::int64_t floats = 0;
  for (const int index : shard) floats += parameter(index).numel();
  const int rank = communicator_.size() + static_cast<int>(channels_.size());
  const Channel& channel = channels_.emplace_back(group_, rank, floats, device_.torch());
  std::int64_t offset = 0;
  for (const int index : shard) {
    const at::Tensor here = parameter(index);
    const auto part = [&](const at::Tensor& staged) {
      return staged.narrow(0, offset, here.numel()).view(here.sizes());
    };
    order_.push_back(index);
    parameters_.push_back(here);
    pushed_.push_back(part(channel.staged_push));
    pulled_.push_back(part(channel.staged_pull));
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

/// The messages are complete when it returns.
void ParameterServer::stage_out() {
  for (const Channel& channel : channels_) {
    if (channel.staged_push.is_cpu()) continue;
    channel.push.floats().copy_(channel.staged_push, /*non_blocking=*/true);
  }
  packed_ = device_.stamp();
  device_.synchronize();
  packed_at_ = host_now();
}

void ParameterServer::pack() {
  const at::NoGradGuard no_grad;
  gradients_.clear();
  for (const int index : order_) {
    gradients_.push_back(model_.parameters()[static_cast<std::size_t>(index)].grad());
  }
  at::_foreach_copy_(pushed_, gradients_);
  stage_out();
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
  for (const Channel& channel : channels_) {
    if (channel.staged_pull.is_cpu()) continue;
    channel.staged_pull.copy_(channel.pull.floats(), /*non_blocking=*/true);
  }
  at::_foreach_copy_(parameters_, pulled_);
  device_.synchronize();  // the next message comes into the same memory
}

std::vector<BucketMoments> ParameterServer::take_buckets() {
  const Moment offset = device_.moment(packed_) - packed_at_;  // to the device's clock
  std::vector<BucketMoments> moments;
  for (const Channel& channel : channels_) {
    moments.push_back({.bytes = {static_cast<std::int64_t>(channel.push.floats().nbytes())},
                       .ready = device_.moment(ready_),
                       .launch = channel.launch + offset,
                       .done = channel.done + offset});
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
