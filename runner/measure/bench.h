#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/data/loader.h"
#include "runner/measure/profile.h"
#include "runner/measure/replay.h"
#include "runner/measure/straggler.h"
#include "runner/measure/train.h"
#include "runner/strategies/strategy.h"
#include "sim/records/timeline.h"

namespace lockstep::runner {

/// One timed step of a run.
struct TimedStep {
  Moment total = 0, input = 0, forward = 0, backward = 0, optimizer = 0;
  std::vector<BucketTimes> buckets;  ///< from the start of the step
};

/// What is trained, and how.
struct BenchOptions {
  std::string model{};
  int batch = 1;  ///< per worker
  StrategyOptions strategy{};
  LoaderOptions data{};
  Precision precision = Precision::fp32;
  std::uint64_t seed = 1;
  std::vector<InjectedStraggler> stragglers{};
  std::uint64_t draws = 1;          ///< seed of what varies of them, the same on all ranks
  std::optional<Profile> replay{};  ///< waits for it instead of computing
  PointToPoint* servers = nullptr;  ///< all processes, where the strategy has servers
  Moment spin = 0;                  ///< of waits, see wait_until
  bool own_core = false;            ///< that no other worker wants
};

/// A network with a strategy at one batch on one worker, ready to train, or to be replayed.
class Bench {
 public:
  /// `communicator`: null alone.
  Bench(const BenchOptions& options, Communicator* communicator, Device& device);

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
  std::int64_t dataset_samples() const { return loader_ ? loader_->samples() : 0; }
  Bytes input_bytes() const;  ///< of one batch
  /// With servers, in the steps since the last call.
  std::vector<ServerExchange> take_exchanges() { return strategy_->take_exchanges(); }
  /// Parameters as their gradients get ready; trains one step to see it.
  std::vector<int> ready_order();

 private:
  Batch load();
  void step(const Batch& batch, Recorder* recorder);

  BenchOptions options_;
  Device& device_;
  Model model_;
  std::unique_ptr<Strategy> strategy_;
  Slowness slowness_;
  std::optional<Loader> loader_;    ///< unless replayed
  std::optional<Trainer> trainer_;  ///< unless replayed
  std::optional<Replay> replay_;
};

}  // namespace lockstep::runner
