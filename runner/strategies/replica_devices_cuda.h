#pragma once

#include <memory>

#include "runner/measure/cuda/device_cuda.h"
#include "runner/strategies/replica_devices.h"

namespace lockstep::runner {

/// GPUs 0 .. count - 1 of this process, each with a stream of its own, through what nn.DataParallel
/// calls itself: NCCL within the process for broadcast and reduce, peer copies for scatter and
/// gather. `first` is GPU 0 and outlives this. The calling thread, whose streams on all GPUs this
/// sets, is the one that exchanges.
std::unique_ptr<ReplicaDevices> make_gpu_replicas(CudaDevice& first, int count);

}  // namespace lockstep::runner
