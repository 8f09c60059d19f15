#include "calibration/speed.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "calibration/robust.h"

namespace lockstep {

double fit_drift_exponent(const std::vector<ProfileSample>& samples) {
  constexpr int kFewest = 6;        // processes beyond one a group
  constexpr double kSteady = 0.02;  // an index that varies less says nothing
  struct Point {
    double index, step;
  };
  std::map<std::tuple<std::string, int, int, int>, std::vector<Point>> groups;
  for (const ProfileSample& sample : samples) {
    const Time around = sample.speed_index.before + sample.speed_index.after;
    if (around <= Time{} || sample.steps.empty()) continue;
    const Time step = median(sample.steps);
    if (step <= Time{}) continue;
    groups[{sample.profile.model, sample.profile.batch, sample.profile.beside, sample.rank}]
        .push_back({std::log(around.seconds()), std::log(step.seconds())});
  }
  double both = 0, index = 0;
  int freedom = 0;
  for (const auto& [key, points] : groups) {
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
  if (freedom < kFewest || index < freedom * kSteady * kSteady) return 1;
  return std::clamp(both / index, 0.0, 1.0);
}

Time Speed::normalised(Time time, const SpeedIndex& index) const {
  if (!drifts_ || index.before <= Time{} || index.after <= Time{}) return time;
  const double around = (index.before + index.after).seconds();
  return Time::from_seconds(time.seconds() *
                            std::pow(2 * reference_.seconds() / around, exponent_));
}

double Speed::slowdown(const SpeedIndex& index) const {
  constexpr Time kUnit = Time::nanoseconds(1'000'000'000);
  return kUnit.seconds() / normalised(kUnit, index).seconds();
}

}  // namespace lockstep
