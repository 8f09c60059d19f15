#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runner/communicators/communicator.h"
#include "runner/communicators/point_to_point.h"
#include "runner/measure/device.h"
#include "runner/models/model.h"
#include "runner/strategies/names.h"
#include "runner/strategies/replica_devices.h"
#include "sim/records/run.h"

namespace lockstep::runner {

/// One bucket of gradients in one step, on the device's clock.
struct BucketMoments {
  Bytes bytes;
  Moment ready = 0;  ///< its last gradient was ready
  Moment launch = 0, done = 0;
};

/// One exchange of this worker with a server: a gradient there, and parameters back. Versions count
/// the updates that the parameters held.
struct ServerExchange {
  int server = 0;
  std::int64_t computed_on = 0;  ///< version of the parameters that the gradient belongs to
  std::int64_t applied_at = 0;   ///< version to which the server applied it
  std::int64_t received = 0;     ///< version that came back
  Bytes out, in;                 ///< of the messages
};

/// How workers combine their gradients. A step calls before_forward, runs forward (loss), runs
/// backward from loss_weight(), during which each gradient that gets ready is told to
/// gradient_ready, calls before_optimizer, and updates the parameters with gradients(). Where it
/// has several passes, each over its part of the batch, all but the last of them end in after_pass
/// instead, and gradients that are not taken away there are added to by the next.
class Strategy {
 public:
  virtual ~Strategy() = default;

  virtual std::string kind() const = 0;
  /// Backward starts from this instead of one: the sum over workers is then the mean over samples,
  /// at no cost.
  virtual double loss_weight() const = 0;
  /// Forwards and backwards of a step.
  virtual int passes() const { return 1; }
  virtual void before_forward() {}
  /// Of a batch, and back from it: the model's own, unless one worker has several devices.
  virtual at::Tensor loss(Model& model, const at::Tensor& input, const at::Tensor& target,
                          Recorder* recorder);
  virtual void backward(const at::Tensor& loss, const at::Tensor& root);
  /// Whether gradient_ready is to be called.
  virtual bool watches_gradients() const { return false; }
  /// The gradient of Model::parameters()[parameter] has been put into its grad(). Once a pass and
  /// parameter, on the thread that trains or one of autograd's.
  virtual void gradient_ready(int /*parameter*/) {}
  virtual void after_pass() {}
  virtual void before_optimizer() = 0;
  /// In the order of Model::parameters(), until after_optimizer.
  virtual const std::vector<at::Tensor>& gradients() const = 0;
  virtual void after_optimizer() {}
  /// Whether before_optimizer leaves nothing to update: the parameters are the new ones already.
  virtual bool updates_parameters() const { return false; }
  /// With servers, since the last call; k a step, by server.
  virtual std::vector<ServerExchange> take_exchanges() { return {}; }
  /// Buckets of the last step, in the order in which they were launched; waits for them. Without
  /// buckets, each gradient is one.
  virtual std::vector<BucketMoments> take_buckets() = 0;
};

/// `communicator` may be null for "single"; `servers`, all processes, but for "parameter_server".
/// Broadcasts rank 0's parameters and buffers where there are several workers. InputError for an
/// unknown kind, RunError for data_parallel, which has a function of its own. Model, communicator
/// and device outlive it.
std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, Model& model,
                                        Communicator* communicator, Device& device,
                                        PointToPoint* servers = nullptr);

/// Rank 0's parameters and buffers, on every rank.
void share_state(const Model& model, Communicator& communicator);

std::unique_ptr<Strategy> make_single(Model& model);
std::unique_ptr<Strategy> make_all_reduce(Model& model, Communicator& communicator, Device& device);
std::unique_ptr<Strategy> make_gather_scatter(Model& model, Communicator& communicator,
                                              Device& device);
/// One worker with several devices: nn.DataParallel. `model` is device 0's, `device` that one; a
/// batch is shared out among all. RunError in a step whose batch has not a share for each.
std::unique_ptr<Strategy> make_data_parallel(Model& model, ReplicaDevices& devices, Device& device);
/// `options.split`: samples of each worker; empty: as many each. Of a communicator of unlike
/// devices, make_mixed.
std::unique_ptr<Strategy> make_heterogeneous(const StrategyOptions& options, Model& model,
                                             Communicator& communicator, Device& device);
/// The same of GPUs and a worker on cores, `options.combine_on_host` saying where gradients are
/// added.
std::unique_ptr<Strategy> make_mixed(const StrategyOptions& options, Model& model,
                                     MixedCommunicator& workers);
std::unique_ptr<Strategy> make_ddp(const StrategyOptions& options, Model& model,
                                   Communicator& communicator, Device& device);
/// The workers are `communicator`'s, the servers the ranks of `group` behind them, which serve().
std::unique_ptr<Strategy> make_parameter_server(const StrategyOptions& options, Model& model,
                                                Communicator& communicator, Device& device,
                                                PointToPoint& group);

std::unique_ptr<Strategy> make_horovod(const StrategyOptions& options, Model& model,
                                       Communicator& communicator);

}  // namespace lockstep::runner
