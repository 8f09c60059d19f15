#include "runner/measure/statistics.h"

#include <algorithm>
#include <cmath>

#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

std::vector<double> in_ns(const std::vector<Time>& samples) {
  std::vector<double> values;
  for (const Time sample : samples) values.push_back(static_cast<double>(sample.ns()));
  return values;
}

Time from_ns(double ns) {
  return Time::nanoseconds(std::llround(ns));
}

}  // namespace

double quantile(std::vector<double> values, double share) {
  LOCKSTEP_ASSERT(!values.empty(), "a quantile of something");
  std::ranges::sort(values);
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - static_cast<double>(below));
}

std::int64_t median_ns(const std::vector<std::int64_t>& values) {
  return std::llround(median({values.begin(), values.end()}));
}

Quantiles quantiles(const std::vector<Time>& samples) {
  const std::vector<double> values = in_ns(samples);
  return {.mean = mean_time(samples),
          .p10 = from_ns(quantile(values, 0.1)),
          .p50 = from_ns(quantile(values, 0.5)),
          .p90 = from_ns(quantile(values, 0.9))};
}

Time median_time(const std::vector<Time>& samples) {
  return from_ns(median(in_ns(samples)));
}

Time mean_time(const std::vector<Time>& samples) {
  LOCKSTEP_ASSERT(!samples.empty(), "a mean of something");
  Time sum;
  for (const Time sample : samples) sum += sample;
  return Time::nanoseconds(sum.ns() / static_cast<std::int64_t>(samples.size()));
}

}  // namespace lockstep::runner
