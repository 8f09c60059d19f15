#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runner/data/loader.h"
#include "runner/measure/profile.h"
#include "runner/measure/train.h"
#include "runner/strategies/strategy.h"
#include "sim/records/timeline.h"

namespace lockstep::runner {

/// One timed step of a run.
struct TimedStep {
  Moment total = 0, input = 0, forward = 0, backward = 0, optimizer = 0;
  std::vector<BucketTimes> buckets;  ///< from the start of the step
};

/// A network with a strategy at one batch on one worker, ready to train.
class Bench {
 public:
  Bench(const std::string& model, int batch, const StrategyOptions& strategy,
        Communicator* communicator, Device& device, const LoaderOptions& data, std::uint64_t seed);

  Bench(const Bench&) = delete;  // its parts refer to each other
  Bench& operator=(const Bench&) = delete;

  /// Trains one step and takes its time, input included.
  TimedStep timed_step();
  /// Trains one step and takes the marks of all layers.
  StepParts profiled_step();
  /// Trains one step and returns what this worker did when, by the host's clock, as spans of
  /// worker `rank` from `origin` on.
  Timeline traced_step(int rank, Moment origin);

  const Model& model() const { return model_; }
  std::int64_t dataset_samples() const { return loader_.samples(); }
  Bytes input_bytes() const;  ///< of one batch
  /// Parameters as their gradients get ready; trains one step to see it.
  std::vector<int> ready_order();

 private:
  Device& device_;
  int batch_;
  Model model_;
  std::unique_ptr<Strategy> strategy_;
  Trainer trainer_;
  Loader loader_;
};

}  // namespace lockstep::runner
