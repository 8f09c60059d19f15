#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runner/communicators/communicator.h"
#include "runner/measure/device.h"
#include "runner/models/model.h"
#include "sim/records/run.h"

namespace lockstep::runner {

/// One bucket of gradients in one step, on the device's clock.
struct BucketMoments {
  Bytes bytes;
  Moment ready = 0;  ///< its last gradient was ready
  Moment launch = 0, done = 0;
};

/// How workers combine their gradients. A step calls before_forward, runs forward, runs backward
/// from loss_weight() (the strategy's own hooks see each gradient get ready), calls
/// before_optimizer, and updates the parameters with gradients().
class Strategy {
 public:
  virtual ~Strategy() = default;

  virtual std::string kind() const = 0;
  /// Backward starts from this instead of one: the sum over workers is then the mean over samples,
  /// at no cost.
  virtual double loss_weight() const = 0;
  virtual void before_forward() = 0;
  virtual void before_optimizer() = 0;
  /// In the order of Model::parameters(), until after_optimizer.
  virtual const std::vector<at::Tensor>& gradients() const = 0;
  virtual void after_optimizer() {}
  /// Buckets of the last step, in the order in which they were launched; waits for them.
  virtual std::vector<BucketMoments> take_buckets() = 0;
};

/// `communicator` may be null for "single". Broadcasts rank 0's parameters and buffers where there
/// are several workers. InputError for an unknown kind. Model, communicator and device outlive it.
std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, Model& model,
                                        Communicator* communicator, Device& device);

std::unique_ptr<Strategy> make_single(Model& model);
std::unique_ptr<Strategy> make_ddp(const StrategyOptions& options, Model& model,
                                   Communicator& communicator, Device& device);

}  // namespace lockstep::runner
