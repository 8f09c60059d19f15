#pragma once

#include <span>
#include <utility>
#include <vector>

#include "sim/core/time.h"

namespace lockstep {

/// Of an even number of values the mean of the two in the middle. `values` must not be empty.
double median(std::vector<double> values);
Time median(std::vector<Time> values);
/// The smaller of the two in the middle: always one of the values.
Time lower_median(std::vector<Time> values);

/// Standard deviation of few values in several groups with medians of their own: from the median
/// distance of all pairs within a group (times 1.0483, exact for a normal distribution), which,
/// other than the distance to a median of three, is not biased. Zero without a pair.
double pairwise_sigma(const std::vector<std::vector<double>>& groups);

/// The non-decreasing sequence nearest to `values`: neighbours out of order are pooled to their
/// lower median, so that one outlier moves nothing but itself.
std::vector<Time> non_decreasing(const std::vector<Time>& values);

}  // namespace lockstep
