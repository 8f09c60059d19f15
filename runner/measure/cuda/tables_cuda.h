#pragma once

#include <vector>

#include "runner/measure/cuda/step_timing.h"
#include "runner/measure/precision.h"
#include "runner/measure/table_sizes.h"
#include "sim/records/collective_table.h"
#include "sim/records/measurement.h"

namespace lockstep::runner {

inline constexpr Bytes kLargestCollective{512 * kMiB.count};

/// Time of a collective of fp32 sums by size, calls back to back on the communication stream,
/// nothing else on the devices; what the call takes the host apart, in a row of such calls and
/// behind launches of other kinds. Every rank of a worker's communicator calls it; each gets its
/// own times.
CollectiveTable measure_collective_cuda(const GpuWorker& worker, CollectiveKind kind,
                                        const TableSizes& sizes);

/// Gathers to rank 0 and scatters from it. A gather is answered by a scatter of the smallest size
/// and the other way round, so that no rank runs ahead as it would in a row of sends, and the time
/// is that from the last rank's launch; of two of the smallest size each counts half. The host time
/// of a gather is the root's, which has its compute stream wait for what comes.
std::vector<CollectiveTable> measure_root_collectives_cuda(const GpuWorker& worker,
                                                           const std::vector<Bytes>& sizes);

/// Collectives that no strategy here makes: reduce (to rank 0), all_gather, reduce_scatter and
/// all_to_all (bytes of the whole array), send_recv (each rank to the next). Calls in a row, as
/// above; in a row of reduces all ranks but the root may run ahead.
std::vector<CollectiveTable> measure_other_collectives_cuda(const GpuWorker& worker,
                                                            const TableSizes& sizes);

/// Compute of two kinds (limited by arithmetic, by memory) beside an all-reduce that waits for its
/// last rank and beside one that transfers; and the all-reduce beside compute. Every rank calls it.
/// The compute is done as steps of that precision do it.
std::vector<InterferenceSample> measure_interference_cuda(NcclCommunicator& communicator,
                                                          CudaDevice& device, Precision precision);

}  // namespace lockstep::runner
