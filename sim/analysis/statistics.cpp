#include "sim/analysis/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/units.h"

namespace lockstep {
namespace {

Time mean(std::span<const Time> samples) {
  Time sum;
  for (Time sample : samples) sum += sample;
  return Time::picoseconds(multiply_divide(sum.ps(), 1, static_cast<std::int64_t>(samples.size())));
}

Time quantile(std::span<const Time> sorted, std::int64_t percent) {
  const std::int64_t place = percent * static_cast<std::int64_t>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place / 100);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const std::int64_t gap = (sorted[above] - sorted[below]).ps();
  return sorted[below] + Time::picoseconds(multiply_divide(gap, place % 100, 100));
}

}  // namespace

Quantiles quantiles(std::span<const Time> samples) {
  LOCKSTEP_ASSERT(!samples.empty(), "quantiles of nothing");
  std::vector<Time> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  return {.mean = mean(samples),
          .p10 = quantile(sorted, 10),
          .p50 = quantile(sorted, 50),
          .p90 = quantile(sorted, 90)};
}

double relative_spread(std::span<const Time> samples) {
  if (samples.size() < 2) return 0;
  const Time centre = mean(samples);
  if (centre == Time{}) return 0;
  double squares = 0;
  for (Time sample : samples) {
    const double off = (sample - centre).seconds();
    squares += off * off;
  }
  return std::sqrt(squares / static_cast<double>(samples.size() - 1)) / centre.seconds();
}

}  // namespace lockstep
