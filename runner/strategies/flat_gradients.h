#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "runner/models/model.h"
#include "sim/records/run.h"

namespace lockstep::runner {

/// Elements of all parameters together.
std::int64_t element_count(const Model& model);

/// An empty array for all gradients, on the device of the model.
at::Tensor flat_like(const Model& model);

/// `flat` in the shapes of the parameters, in their order.
std::vector<at::Tensor> views_of(const at::Tensor& flat, const Model& model);

/// Copies all gradients of the last backward into `views`.
void pack_gradients(const Model& model, const std::vector<at::Tensor>& views);

/// n_i / N of one of `workers`, by options.split; without one, as much as the others.
double share_of(const StrategyOptions& options, int rank, int workers);

}  // namespace lockstep::runner
