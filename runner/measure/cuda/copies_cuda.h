#pragma once

#include <vector>

#include "runner/measure/cuda/device_cuda.h"
#include "sim/records/collective_table.h"

namespace lockstep::runner {

/// Gradients of `tensors` parameters copied into one flat bucket by one call.
CopyTable measure_bucket_in_cuda(CudaDevice& device);

/// Two arrays added into a third of that size, as the root does with gathered gradients.
CopyTable measure_add_cuda(CudaDevice& device);

/// Copies between host and GPU, one after another: "host_to_device" and "device_to_host" from and
/// to pinned memory, the same with "_pageable" where CUDA copies through memory of its own and the
/// host waits; and to another GPU of the host, "device_to_device", where this process sees one.
std::vector<CopyTable> measure_transfers_cuda(CudaDevice& device);

}  // namespace lockstep::runner
