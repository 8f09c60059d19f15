#include "sim/analysis/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/core/error.h"
#include "sim/core/units.h"

namespace lockstep {
namespace {

constexpr double kClose = 0.01;
constexpr int kMostRounds = 20;

SplitRound look(const std::vector<int>& shares, const ShareTime& time) {
  SplitRound round{.shares = shares, .times = {}};
  for (std::size_t i = 0; i < shares.size(); ++i) round.times.push_back(time(i, shares[i]));
  return round;
}

/// The most samples, up to `samples`, that the device does within `limit`; zero: not even one.
int most_within(std::size_t device, int samples, Time limit, const ShareTime& time) {
  int fits = 0, beyond = samples + 1;
  while (beyond - fits > 1) {
    const int middle = fits + (beyond - fits) / 2;
    (time(device, middle) <= limit ? fits : beyond) = middle;
  }
  return fits;
}

std::vector<int> shares_within(int samples, std::size_t devices, Time limit,
                               const ShareTime& time) {
  std::vector<int> shares;
  for (std::size_t i = 0; i < devices; ++i) {
    shares.push_back(most_within(i, samples, limit, time));
  }
  return shares;
}

bool suffice(const std::vector<int>& shares, int samples) {
  const auto sum = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  return sum >= samples && std::ranges::min(shares) > 0;
}

Time mean_time_of(const std::vector<Time>& times) {
  Time sum;
  for (const Time time : times) sum += time;
  return Time::picoseconds(multiply_divide(sum.ps(), 1, static_cast<std::int64_t>(times.size())));
}

}  // namespace

double apart(const std::vector<Time>& times) {
  const auto [least, most] = std::ranges::minmax(times);
  return most > Time{} ? (most - least).seconds() / most.seconds() : 0;
}

std::vector<int> proportional_shares(int samples, const std::vector<double>& weights) {
  LOCKSTEP_ASSERT(std::ssize(weights) <= samples, "a sample for each");
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> ideal;
  std::vector<int> shares;
  for (const double weight : weights) {
    ideal.push_back(samples * weight / sum);
    shares.push_back(std::max(1, static_cast<int>(ideal.back())));
  }
  const auto missing = [&](std::size_t i) { return ideal[i] - shares[i]; };
  int left = samples - std::accumulate(shares.begin(), shares.end(), 0);
  for (; left != 0; left += left > 0 ? -1 : 1) {
    std::size_t chosen = shares.size();
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (left < 0 && shares[i] == 1) continue;
      const bool first = chosen == shares.size();
      const bool more = !first && (left > 0 ? missing(i) > missing(chosen) + 1e-9
                                            : missing(i) < missing(chosen) - 1e-9);
      if (first || more) chosen = i;
    }
    shares[chosen] += left > 0 ? 1 : -1;
  }
  return shares;
}

std::vector<int> rebalanced(const SplitRound& round) {
  std::vector<double> speeds;
  for (std::size_t i = 0; i < round.shares.size(); ++i) {
    speeds.push_back(round.shares[i] / std::max(1e-12, round.times[i].seconds()));
  }
  return proportional_shares(std::accumulate(round.shares.begin(), round.shares.end(), 0), speeds);
}

std::vector<SplitRound> balance(int samples, std::size_t devices, const ShareTime& time) {
  const auto longest = [](const SplitRound& round) { return std::ranges::max(round.times); };
  std::vector<int> shares = proportional_shares(samples, std::vector<double>(devices, 1));
  std::vector<SplitRound> rounds;
  while (std::ssize(rounds) < kMostRounds &&
         std::ranges::find(rounds, shares, &SplitRound::shares) == rounds.end()) {
    rounds.push_back(look(shares, time));
    if (apart(rounds.back().times) <= kClose) break;
    shares = rebalanced(rounds.back());
  }
  const auto best = std::ranges::min_element(rounds, {}, longest);
  if (longest(*best) < longest(rounds.back())) rounds.push_back(SplitRound(*best));
  return rounds;
}

std::vector<int> best_split(int samples, std::size_t devices, const ShareTime& time) {
  LOCKSTEP_ASSERT(devices > 0 && devices <= static_cast<std::size_t>(samples),
                  "a sample for each device");
  Time low, high;  // too short; long enough
  for (std::size_t i = 0; i < devices; ++i) high = std::max(high, time(i, samples));
  while ((high - low).ps() > 1) {
    const Time middle = low + Time::picoseconds((high - low).ps() / 2);
    (suffice(shares_within(samples, devices, middle, time), samples) ? high : low) = middle;
  }
  std::vector<int> shares = shares_within(samples, devices, high, time);
  std::int64_t surplus = std::accumulate(shares.begin(), shares.end(), std::int64_t{0}) - samples;
  for (; surplus > 0; --surplus) {
    std::size_t slowest = devices;
    for (std::size_t i = 0; i < devices; ++i) {
      if (shares[i] == 1) continue;
      if (slowest == devices || time(i, shares[i]) > time(slowest, shares[slowest])) slowest = i;
    }
    --shares[slowest];
  }
  return shares;
}

Time mean_of_maxima(const std::vector<std::vector<Time>>& batches) {
  LOCKSTEP_ASSERT(!batches.empty(), "a mean of no batches");
  std::vector<Time> maxima;
  for (const std::vector<Time>& batch : batches) maxima.push_back(std::ranges::max(batch));
  return mean_time_of(maxima);
}

Time maximum_of_means(const std::vector<std::vector<Time>>& batches) {
  LOCKSTEP_ASSERT(!batches.empty(), "a mean of no batches");
  Time largest;
  for (std::size_t device = 0; device < batches.front().size(); ++device) {
    std::vector<Time> times;
    for (const std::vector<Time>& batch : batches) times.push_back(batch.at(device));
    largest = std::max(largest, mean_time_of(times));
  }
  return largest;
}

}  // namespace lockstep
