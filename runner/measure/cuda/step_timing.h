#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "runner/communicators/nccl.h"
#include "runner/communicators/point_to_point.h"
#include "runner/measure/cuda/device_cuda.h"
#include "runner/measure/recorder.h"
#include "sim/records/run.h"

namespace lockstep::runner {

/// A GPU and, where there are several workers, its way to the others.
struct GpuWorker {
  CudaDevice& device;
  NcclCommunicator* communicator = nullptr;  ///< null: alone
  std::function<void()> beat = [] {};        ///< tells who watches that this worker goes on
  PointToPoint* servers = nullptr;           ///< and workers before them; null: none
  Communicator* idle = nullptr;              ///< of a worker that is alone with servers

  int rank() const { return communicator ? communicator->rank() : 0; }
  int size() const { return communicator ? communicator->size() : 1; }
  /// What a strategy of several workers is made with, even where there is one; null: no such
  /// strategy.
  Communicator* partners() const { return communicator ? communicator : idle; }
  /// The host waits for the device; a lost peer ends in RunError.
  void synchronize() const;
  void barrier() const;
  /// Mean over the workers, bit by bit the same on all, so that they agree on counts.
  Time agree(Time mine) const;
  /// Every worker says whether something fitted into its memory; the first rank where it did not.
  std::optional<int> first_without_room(bool fitted) const;
};

/// Of `wanted` steps that take `one` each, as many as a second and a half hold, at least `fewest`:
/// long steps differ little, and large batches are there for the memory that they take.
int within_patience(Time one, int wanted, int fewest);

/// Steps of `one` each that fill `budget`: `fewest` to `most`, but of those that take seconds
/// three.
int steps_within(Time one, Time budget, int fewest, int most);

/// Trains until nothing is left to be chosen: `wanted` steps, but of those that take seconds three.
/// Libraries search their algorithms in the first, which can take ten times as long as a step: it
/// gets a recorder that beats after each layer. Returns the time of a step. Workers call it
/// together.
Time warm_up(const GpuWorker& worker, int wanted, const std::function<void(Recorder*)>& step);

/// Times of `count` calls of `step`. Sync::step: the host waits for the device after each, and its
/// clock is read; Sync::none: the host runs ahead, and the device's clock is read between steps.
std::vector<Time> time_steps(const GpuWorker& worker, Sync sync, int count,
                             const std::function<void()>& step);

/// Steps that steps_for() takes itself.
inline constexpr int kTrialSteps = 3;

/// How many steps fill about `budget`, the same on every worker: `fewest` to `most`, but of steps
/// that take seconds at least three.
int steps_for(const GpuWorker& worker, Time budget, int fewest, int most,
              const std::function<void()>& step);

}  // namespace lockstep::runner
