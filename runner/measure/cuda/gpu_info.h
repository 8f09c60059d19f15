#pragma once

#include <string>
#include <vector>

#include "sim/records/origin.h"

namespace lockstep::runner {

/// Every GPU of the host as nvidia-smi sees it now: clocks, power, why it is throttled. Empty where
/// nvidia-smi is missing.
std::vector<GpuInfo> query_gpus();

/// Version of the display driver, "" where nvidia-smi is missing.
std::string driver_version();

/// How the GPUs are connected, from the matrix of `nvidia-smi topo -m`: "NVLink, 18 links a pair",
/// or the kinds of link that occur. "" where unknown.
std::string describe_links(const std::string& topology_matrix);
std::string query_links();

/// "2.28.9", of the library that is loaded.
std::string nccl_version();
/// "13.0", of the runtime that is loaded.
std::string cuda_version();

}  // namespace lockstep::runner
