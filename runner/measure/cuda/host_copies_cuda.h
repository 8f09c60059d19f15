#pragma once

#include <memory>

#include "runner/communicators/host_copies.h"
#include "runner/measure/cuda/device_cuda.h"

namespace lockstep::runner {

/// Of a worker on a GPU: on a stream of their own. `device` outlives it.
std::unique_ptr<HostCopies> make_cuda_copies(CudaDevice& device);

}  // namespace lockstep::runner
