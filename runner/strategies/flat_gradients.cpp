#include "runner/strategies/flat_gradients.h"

#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty.h>

#include <numeric>

#include "sim/core/error.h"

namespace lockstep::runner {

std::int64_t element_count(const Model& model) {
  std::int64_t elements = 0;
  for (const at::Tensor& parameter : model.parameters()) elements += parameter.numel();
  return elements;
}

at::Tensor flat_like(const Model& model) {
  return at::empty({element_count(model)},
                   model.parameters().front().options().requires_grad(false));
}

std::vector<at::Tensor> views_of(const at::Tensor& flat, const Model& model) {
  std::vector<at::Tensor> views;
  std::int64_t offset = 0;
  for (const at::Tensor& parameter : model.parameters()) {
    views.push_back(flat.narrow(0, offset, parameter.numel())
                        .as_strided(parameter.sizes(), parameter.strides()));
    offset += parameter.numel();
  }
  return views;
}

void pack_gradients(const Model& model, const std::vector<at::Tensor>& views) {
  std::vector<at::Tensor> fresh;
  for (const at::Tensor& parameter : model.parameters()) fresh.push_back(parameter.grad());
  at::_foreach_copy_(views, fresh);
}

double share_of(const StrategyOptions& options, int rank, int workers) {
  const std::vector<int>& split = options.split;
  if (split.empty()) return 1.0 / workers;
  LOCKSTEP_ASSERT(std::ssize(split) == workers, "a share for each worker");
  return split[static_cast<std::size_t>(rank)] / std::accumulate(split.begin(), split.end(), 0.0);
}

}  // namespace lockstep::runner
