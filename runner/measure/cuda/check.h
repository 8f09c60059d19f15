#pragma once

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <string_view>

#include "sim/core/error.h"

namespace lockstep::runner {

/// A CUDA call that failed ends the run: the device's state is unknown from there on.
inline void check(cudaError_t status, std::string_view doing) {
  if (status != cudaSuccess) {
    throw RunError(fmt::format("{}: CUDA: {} ({})", doing, cudaGetErrorString(status),
                               cudaGetErrorName(status)));
  }
}

}  // namespace lockstep::runner
