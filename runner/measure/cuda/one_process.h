#pragma once

#include <functional>

#include "runner/communicators/rendezvous.h"
#include "runner/measure/cuda/step_timing.h"
#include "runner/strategies/replica_devices.h"

namespace lockstep::runner {

/// What rank 0 does with all GPUs alone. The others keep their own idle, without a kernel that
/// waits on it as a barrier of NCCL would, and say nothing, so that a silent rank 0 is noticed.
class OneProcess {
 public:
  /// `store`: null where there is one worker.
  OneProcess(const GpuWorker& worker, Store* store) : worker_(worker), store_(store) {}

  /// All ranks call; rank 0 does `work`.
  void run(const std::function<void(ReplicaDevices&)>& work);

 private:
  GpuWorker worker_;
  Store* store_;
  int times_ = 0;
};

}  // namespace lockstep::runner
