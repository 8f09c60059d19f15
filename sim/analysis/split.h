#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "sim/core/time.h"

namespace lockstep {

/// What a device (from 0) takes for so many samples (>= 1), its own part of the exchange included.
using ShareTime = std::function<Time(std::size_t device, int samples)>;

/// One look at how long the devices take for their shares.
struct SplitRound {
  std::vector<int> shares;
  std::vector<Time> times;
};
/// (longest - shortest) / longest.
double apart(const std::vector<Time>& times);

/// `samples` in proportion to `weights` (> 0), in whole samples and at least one each; what
/// rounding leaves goes to those that it took most from. There must be a sample for each.
std::vector<int> proportional_shares(int samples, const std::vector<double>& weights);

/// The same samples in proportion to what each device did a second.
std::vector<int> rebalanced(const SplitRound& round);

/// What a runner does that can only measure: begins with equal shares, and shares out anew by the
/// speeds seen until times are within a hundredth or shares come back. The last round is the one
/// whose longest time is least.
std::vector<SplitRound> balance(int samples, std::size_t devices, const ShareTime& time);

/// The shares whose longest time is least, where no device gets faster with more samples. For times
/// a_i + c_i b in fractions of samples that is T = (samples + sum a_i / c_i) / sum 1 / c_i for all,
/// b_i = (T - a_i) / c_i; here in whole samples, for any times.
std::vector<int> best_split(int samples, std::size_t devices, const ShareTime& time);

/// Of several batches, each a time for every device: a step waits for its slowest device, so that
/// it takes the mean of the maxima, not the maximum of the means. There must be a batch.
Time mean_of_maxima(const std::vector<std::vector<Time>>& batches);
Time maximum_of_means(const std::vector<std::vector<Time>>& batches);

}  // namespace lockstep
