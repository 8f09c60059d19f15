#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lockstep::runner {

/// Indices of the parameters that `loss` does not depend on, by a walk over its autograd graph
/// (reducer.cpp, search_unused_parameters).
std::vector<int> unused_parameters(const at::Tensor& loss,
                                   const std::vector<at::Tensor>& parameters);

}  // namespace lockstep::runner
