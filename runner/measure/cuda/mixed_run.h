#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runner/communicators/mixed.h"
#include "runner/measure/cuda/step_timing.h"
#include "runner/measure/options.h"
#include "runner/measure/reference.h"
#include "sim/records/run.h"

namespace lockstep::runner {

/// A worker among GPUs and one on cores.
struct MixedWorker {
  const MeasureOptions& options;
  Device& device;
  MixedCommunicator& all;
  const GpuWorker* gpu = nullptr;        ///< null on cores
  ReferenceKernel* reference = nullptr;  ///< of cores; null on a GPU
  std::function<void()> beat;

  /// Cores know no TF32.
  Precision precision() const;
  /// How fast this worker's device is now.
  Time speed() const;
  void synchronize() const;
  /// Rank 0's.
  Time agree(Time mine) const;
};

/// A model with a strategy on this worker, ready to train.
class MixedTraining {
 public:
  /// `samples` in each of this worker's steps. Trains some first, all workers together.
  MixedTraining(const MixedWorker& worker, const std::string& model, int samples,
                const StrategyOptions& strategy);
  ~MixedTraining();
  MixedTraining(const MixedTraining&) = delete;
  MixedTraining& operator=(const MixedTraining&) = delete;

  /// From one end to the next, the host waiting for the device after each.
  std::vector<Time> time_steps(int count);

 private:
  struct Parts;
  void step();

  const MixedWorker& worker_;
  std::unique_ptr<Parts> parts_;
};

/// One repeat of the strategy heterogeneous, whose options say who takes how many samples and where
/// gradients are added, as this rank saw it. Every worker calls it.
Run measure_mixed_run(const MixedWorker& worker, const std::string& model, int batch,
                      const StrategyOptions& strategy);

/// A step of every worker for its share, nobody exchanging anything, all at once.
std::vector<Time> own_steps(const MixedWorker& worker, const std::string& model,
                            const std::vector<int>& shares);

}  // namespace lockstep::runner
