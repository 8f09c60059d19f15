#pragma once

#include <vector>

#include "runner/communicators/nccl.h"
#include "runner/measure/cuda/device_cuda.h"
#include "runner/measure/precision.h"
#include "sim/records/collective_table.h"
#include "sim/records/measurement.h"

namespace lockstep::runner {

/// 1 KiB, 2 KiB, ... up to `most`.
std::vector<Bytes> doubling_sizes(Bytes most);

/// Time of a collective of fp32 sums by size, calls back to back on the communication stream,
/// nothing else on the devices. Every rank calls it; each gets its own times.
CollectiveTable measure_collective_cuda(NcclCommunicator& communicator, CollectiveKind kind,
                                        const std::vector<Bytes>& sizes);

/// Gathers to rank 0 and scatters from it. A gather is answered by a scatter of the smallest size
/// and the other way round, so that no rank runs ahead as it would in a row of sends, and the time
/// is that from the last rank's launch; of two of the smallest size each counts half. The host time
/// of a gather is the root's, which has its compute stream wait for what comes.
std::vector<CollectiveTable> measure_root_collectives_cuda(NcclCommunicator& communicator,
                                                           const std::vector<Bytes>& sizes);

inline constexpr Bytes kLargestOfRoot{32 * kMiB.count};  ///< no gradient here is larger by much

/// Two arrays added into a third of that size, as the root does with gathered gradients.
CopyTable measure_add_cuda(CudaDevice& device);

/// Gradients of `tensors` parameters copied into one flat bucket by one call.
CopyTable measure_bucket_in_cuda(CudaDevice& device);

/// Compute of two kinds (limited by arithmetic, by memory) beside an all-reduce that waits for its
/// last rank and beside one that transfers; and the all-reduce beside compute. Every rank calls it.
/// The compute is done as steps of that precision do it.
std::vector<InterferenceSample> measure_interference_cuda(NcclCommunicator& communicator,
                                                          CudaDevice& device, Precision precision);

}  // namespace lockstep::runner
