#include "sim/workload/server_delays.h"

#include <fmt/core.h>

#include <cmath>
#include <utility>

#include "sim/core/error.h"
#include "sim/core/variability.h"

namespace lockstep {

ServerDelays::ServerDelays(const ServerSystem& system) : system_(system) {
  LOCKSTEP_ASSERT(system.delays.empty() || system.delays.size() == system.compute.size(),
                  "delays are told for every worker, or for none");
  for (const std::vector<DrawnDelay>& mine : system.delays) passed_.emplace_back(mine.size());
}

Time ServerDelays::next(std::uint32_t worker, std::uint32_t iteration, Time now) {
  constexpr double kLongest = 4e18;  // picoseconds
  if (passed_.empty()) return {};
  double sum = 0;
  for (std::size_t i = 0; i < passed_[worker].size(); ++i) {
    const DrawnDelay& delay = system_.delays[worker][i];
    const DrawKey key{system_.seed, worker, iteration + system_.first_draw,
                      kDrawStream - delay.stream};
    double times = 0;
    if (by_clock(delay.variability)) {
      const Time from = std::exchange(passed_[worker][i], now);
      times = static_cast<double>(pauses_due(delay.variability, key, from, now));
    } else {
      times = draw(delay.variability, key).value();
    }
    sum += static_cast<double>(delay.time.ps()) * times;
  }
  if (static_cast<double>(now.ps()) + sum < kLongest) return Time::picoseconds(std::llround(sum));
  throw InputError({}, "stragglers",
                   fmt::format("worker {} stops beyond the simulated time", worker),
                   "shorter delays, or fewer iterations");
}

}  // namespace lockstep
