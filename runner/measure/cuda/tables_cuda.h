#pragma once

#include <vector>

#include "runner/communicators/nccl.h"
#include "runner/measure/cuda/device_cuda.h"
#include "sim/records/collective_table.h"
#include "sim/records/measurement.h"

namespace lockstep::runner {

/// 1 KiB, 2 KiB, ... up to `most`.
std::vector<Bytes> doubling_sizes(Bytes most);

/// Time of a collective of fp32 sums by size, calls back to back on the communication stream,
/// nothing else on the devices. Every rank calls it; each gets its own times.
CollectiveTable measure_collective_cuda(NcclCommunicator& communicator, CollectiveKind kind,
                                        const std::vector<Bytes>& sizes);

/// Gradients of `tensors` parameters copied into one flat bucket by one call.
CopyTable measure_bucket_in_cuda(CudaDevice& device);

/// Compute of two kinds (limited by arithmetic, by memory) beside an all-reduce that waits for its
/// last rank and beside one that transfers; and the all-reduce beside compute. Every rank calls it.
std::vector<InterferenceSample> measure_interference_cuda(NcclCommunicator& communicator,
                                                          CudaDevice& device);

}  // namespace lockstep::runner
