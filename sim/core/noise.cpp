#include "sim/core/noise.h"

#include <algorithm>

namespace lockstep {
namespace {

/// The product, or 2^30 where it would be more: a heavy tail meets noise.
Factor times(Factor a, Factor b) {
  constexpr double kMost = 0x1p30;
  return a.value() * b.value() < kMost ? a * b : Factor::of(kMost);
}

}  // namespace

WorkFactors::WorkFactors(const EngineOptions& options)
    : slowdowns_(options.slowdowns),
      drawn_(options.drawn),
      seed_(options.seed),
      process_(options.noise.process),
      step_(options.noise.step),
      task_(options.noise.task) {
  const bool slowed = std::any_of(slowdowns_.begin(), slowdowns_.end(), [](const Slowdown& s) {
    return s.host != Factor{} || s.device != Factor{} || s.drawn > 0;
  });
  vary_ = slowed || process_.varies() || step_.varies() || task_.varies();
}

Slowdown WorkFactors::worker(std::uint32_t worker, std::uint32_t iteration) const {
  const Slowdown constant = slowdowns_.empty() ? Slowdown{} : slowdowns_[worker];
  const Factor process = process_.draw({seed_, worker, kWhole, kWhole});
  const Factor step = step_.draw({seed_, worker, iteration, kWhole});
  Slowdown result{(constant.host * process) * step, (constant.device * process) * step};
  if (constant.drawn == 0) return result;
  for (const DrawnFactor& factor : drawn_[constant.drawn - 1]) {
    const Factor by =
        draw(factor.variability, {seed_, worker, iteration, kDrawStream - factor.stream});
    result.host = times(result.host, by);
    result.device = times(result.device, by);
  }
  return result;
}

}  // namespace lockstep
