#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/time.h"
#include "sim/records/run.h"

namespace lockstep::runner {

/// Linear between the two nearest ranks; `share` within 0..1. `values` must not be empty.
double quantile(std::vector<double> values, double share);
inline double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}
/// Of nanoseconds.
std::int64_t median_ns(const std::vector<std::int64_t>& values);

Quantiles quantiles(const std::vector<Time>& samples);
Time median_time(const std::vector<Time>& samples);
Time mean_time(const std::vector<Time>& samples);

}  // namespace lockstep::runner
