#include "calibration/validate_buckets.h"

#include <fmt/core.h>

#include <string>

#include "calibration/validate.h"
#include "sim/workload/profile_choice.h"

namespace lockstep {

std::vector<ValidationPoint> validate_buckets(const Calibration& calibration, const Run& run) {
  if (run.strategy.kind != "ddp" || on_cpu(calibration)) return {};
  const std::vector<BucketComparison> buckets = compare_buckets(calibration, run);
  if (buckets.empty()) return {};
  std::vector<ValidationPoint> points;
  const auto add = [&](const BucketComparison& of, const std::string& what, Time predicted,
                       Time measured) {
    ValidationPoint point = point_of(run);
    point.run += ", " + what;
    point.predicted = predicted;
    point.measured = point.measured_normalised = measured;
    point.error = share_later(of, predicted, measured);
    point.stable = run.stable;
    points.push_back(point);
  };
  for (const BucketComparison& one : buckets) {
    add(one, fmt::format("bucket {} launched", one.bucket), one.predicted.launch,
        one.measured.launch);
    add(one, fmt::format("bucket {} done", one.bucket), one.predicted.done, one.measured.done);
  }
  const BucketComparison& last = buckets.back();
  add(last, "exposed", last.predicted.done - last.predicted.ready,
      last.measured.done - last.measured.ready);
  return points;
}

}  // namespace lockstep
