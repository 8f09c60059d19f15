#include "calibration/robust.h"

#include <algorithm>
#include <cmath>

#include "sim/core/error.h"

namespace lockstep {
namespace {

/// The two values in the middle; one and the same of an odd number.
template <class T>
std::pair<T, T> middle(std::vector<T>& values) {
  LOCKSTEP_ASSERT(!values.empty(), "a median of something");
  const auto upper = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), upper, values.end());
  if (values.size() % 2 == 1) return {*upper, *upper};
  return {*std::max_element(values.begin(), upper), *upper};
}

}  // namespace

double median(std::vector<double> values) {
  const auto [low, high] = middle(values);
  return (low + high) / 2;
}

Time median(std::vector<Time> values) {
  const auto [low, high] = middle(values);
  return low + Time::picoseconds((high - low).ps() / 2);
}

Time lower_median(std::vector<Time> values) {
  return middle(values).first;
}

double pairwise_sigma(const std::vector<std::vector<double>>& groups) {
  constexpr double kNormal = 1.0483;  // 1 / (0.67449 * sqrt(2))
  std::vector<double> distances;
  for (const auto& group : groups) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) distances.push_back(std::abs(group[i] - group[k]));
    }
  }
  return distances.empty() ? 0 : kNormal * median(std::move(distances));
}

std::vector<Time> non_decreasing(const std::vector<Time>& values) {
  struct Pool {
    std::vector<Time> members;
    Time level;
  };
  std::vector<Pool> pools;
  for (const Time value : values) {
    pools.push_back({{value}, value});
    while (pools.size() > 1 && pools[pools.size() - 2].level > pools.back().level) {
      Pool last = std::move(pools.back());
      pools.pop_back();
      Pool& joined = pools.back();
      joined.members.insert(joined.members.end(), last.members.begin(), last.members.end());
      joined.level = lower_median(joined.members);
    }
  }
  std::vector<Time> fitted;
  for (const Pool& pool : pools) fitted.insert(fitted.end(), pool.members.size(), pool.level);
  return fitted;
}

}  // namespace lockstep
