#include "sim/core/noise.h"

#include <algorithm>

namespace lockstep {

WorkFactors::WorkFactors(const EngineOptions& options)
    : slowdowns_(options.slowdowns),
      seed_(options.seed),
      process_(options.noise.process),
      step_(options.noise.step),
      task_(options.noise.task) {
  const bool slowed = std::any_of(slowdowns_.begin(), slowdowns_.end(), [](const Slowdown& s) {
    return s.host != Factor{} || s.device != Factor{};
  });
  vary_ = slowed || process_.varies() || step_.varies() || task_.varies();
}

Slowdown WorkFactors::worker(std::uint32_t worker, std::uint32_t iteration) const {
  const Slowdown constant = slowdowns_.empty() ? Slowdown{} : slowdowns_[worker];
  const Factor process = process_.draw({seed_, worker, kWhole, kWhole});
  const Factor step = step_.draw({seed_, worker, iteration, kWhole});
  return {(constant.host * process) * step, (constant.device * process) * step};
}

}  // namespace lockstep
