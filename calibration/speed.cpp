#include "calibration/speed.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "calibration/profile_groups.h"

namespace lockstep {

double fit_drift_exponent(const std::vector<ProfileSample>& samples) {
  constexpr int kFewest = 6;        // processes beyond one a group
  constexpr double kSteady = 0.02;  // an index that varies less says nothing
  struct Point {
    double index, step;
  };
  double both = 0, index = 0;
  int freedom = 0;
  for (const auto& [key, group] : by_key(samples)) {
    std::map<int, std::vector<Point>> of_rank;
    for (const ProfileSample* sample : group) {
      const Time around = sample->speed_index.before + sample->speed_index.after;
      const Time step = median_step(*sample);
      if (around <= Time{} || step <= Time{}) continue;
      of_rank[sample->rank].push_back({std::log(around.seconds()), std::log(step.seconds())});
    }
    for (const auto& [rank, points] : of_rank) {
      Point mean{0, 0};
      for (const Point& point : points) {
        mean.index += point.index / static_cast<double>(points.size());
        mean.step += point.step / static_cast<double>(points.size());
      }
      for (const Point& point : points) {
        both += (point.index - mean.index) * (point.step - mean.step);
        index += (point.index - mean.index) * (point.index - mean.index);
      }
      freedom += static_cast<int>(points.size()) - 1;
    }
  }
  if (freedom < kFewest || index < freedom * kSteady * kSteady) return 1;
  return std::clamp(both / index, 0.0, 1.0);
}

double Speed::slowdown(const SpeedIndex& index) const {
  if (!drifts_ || index.before <= Time{} || index.after <= Time{}) return 1;
  const double around = (index.before + index.after).seconds();
  return std::pow(around / (2 * reference_.seconds()), exponent_);
}

Time Speed::normalised(Time time, const SpeedIndex& index) const {
  return Time::from_seconds(time.seconds() / slowdown(index));
}

}  // namespace lockstep
