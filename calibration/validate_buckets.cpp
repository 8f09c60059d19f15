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
  const double step = median_step(run).seconds();
  std::vector<ValidationPoint> points;
  const auto add = [&](const std::string& what, Time predicted, Time measured) {
    ValidationPoint point = point_of(run);
    point.run += ", " + what;
    point.predicted = predicted;
    point.measured = point.measured_normalised = measured;
    point.error = (predicted - measured).seconds() / step;
    point.stable = run.stable;
    points.push_back(point);
  };
  for (const auto& [index, predicted, measured] : buckets) {
    add(fmt::format("bucket {} launched", index), predicted.launch, measured.launch);
    add(fmt::format("bucket {} done", index), predicted.done, measured.done);
  }
  const auto& [index, predicted, measured] = buckets.back();
  add("exposed", predicted.done - predicted.ready, measured.done - measured.ready);
  return points;
}

}  // namespace lockstep
