#include "calibration/validate.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "calibration/robust.h"
#include "calibration/speed.h"
#include "sim/core/error.h"
#include "sim/simulate.h"
#include "sim/workload/profile_choice.h"

namespace lockstep {
namespace {

constexpr int kIterations = 50;

std::string group_of(const Calibration& calibration, const Run& run, const ResultPoint& point) {
  if (on_cpu(calibration)) return "cpu";
  if (run.graph) return "graph";
  return point.host_bound ? "host_bound" : "device_bound";
}

ValidationPoint compare(const Run& run, const ResultPoint& predicted, const Speed& speed) {
  std::vector<Time> raw, normal;
  for (const RunRepeat& repeat : run.repeats) {
    raw.push_back(repeat.step.p50);
    normal.push_back(speed.normalised(repeat.step.p50, repeat.speed_index));
  }
  ValidationPoint point;
  point.run = run.id;
  point.model = run.model;
  point.strategy = run.strategy.kind;
  point.batch_per_worker = run.batch_per_worker;
  point.workers = run.workers;
  point.graph = run.graph;
  point.sync = run.sync;
  point.predicted = predicted.step.p50;
  point.measured = median(raw);
  point.measured_normalised = median(normal);
  const double center = point.measured_normalised.seconds();
  if (center <= 0) {
    throw InputError({}, run.id, "its steps take no time", "measure it again");
  }
  const auto [least, most] = std::ranges::minmax(normal);
  point.repeat_spread = (most - least).seconds() / center;
  point.error = point.predicted.seconds() / center - 1;
  point.host_bound = predicted.host_bound;
  point.stable = run.stable;
  point.basis = predicted.basis;
  return point;
}

void summarise(ValidationGroup& group) {
  double sum = 0;
  int counted = 0;
  group.worst_error = 0;
  for (const ValidationPoint& point : group.points) {
    if (!counts(point)) continue;
    sum += std::abs(point.error);
    group.worst_error = std::max(group.worst_error, std::abs(point.error));
    ++counted;
  }
  group.mean_error = counted > 0 ? sum / counted : 0;
}

ValidationGroup& group_named(Validation& validation, const std::string& name) {
  for (ValidationGroup& group : validation.groups) {
    if (group.name == name) return group;
  }
  return validation.groups.emplace_back(ValidationGroup{name, 0, 0, {}});
}

void finish(Validation& validation) {
  std::ranges::sort(validation.groups, {}, &ValidationGroup::name);
  for (ValidationGroup& group : validation.groups) summarise(group);
}

}  // namespace

bool counts(const ValidationPoint& point) {
  return point.stable && point.workers > 1;
}

Scenario scenario_of(const Run& run) {
  Scenario scenario;
  scenario.name = run.id;
  scenario.model = run.model;
  scenario.batch_per_worker = run.batch_per_worker;
  scenario.workers = {run.workers};
  scenario.strategy = run.strategy;
  scenario.iterations = kIterations;
  scenario.sync = run.sync;
  scenario.graph = run.graph;
  scenario.precision = run.precision;
  return scenario;
}

Validation validate(const Calibration& calibration, const std::vector<Run>& runs) {
  const Speed speed(calibration.reference, calibration.origin.machine);
  Validation validation;
  validation.calibration = calibration.id;
  for (const Run& run : runs) {
    if (run.failure || run.repeats.empty()) continue;
    const Prediction prediction = simulate(scenario_of(run), calibration, 1);
    const ResultPoint& point = prediction.points.at(0);
    group_named(validation, group_of(calibration, run, point))
        .points.push_back(compare(run, point, speed));
  }
  finish(validation);
  return validation;
}

Validation merge(const std::vector<Validation>& validations) {
  Validation all;
  for (const Validation& one : validations) {
    all.calibration += (all.calibration.empty() ? "" : ", ") + one.calibration;
    for (const ValidationGroup& group : one.groups) {
      auto& points = group_named(all, group.name).points;
      points.insert(points.end(), group.points.begin(), group.points.end());
    }
  }
  finish(all);
  return all;
}

std::vector<BucketComparison> compare_buckets(const Calibration& calibration, const Run& run) {
  if (run.ranks.empty() || run.repeats.empty()) return {};
  const auto slowest = std::ranges::max_element(run.ranks, {}, &RunRank::step);
  const Prediction prediction = simulate(scenario_of(run), calibration, 1);
  const auto& predicted = prediction.points.at(0).buckets;
  const Speed speed(calibration.reference, calibration.origin.machine);
  const SpeedIndex& index = run.repeats.front().speed_index;
  std::vector<BucketComparison> comparison;
  const std::size_t count = std::min(predicted.size(), slowest->buckets.size());
  for (std::size_t i = 0; i < count; ++i) {
    BucketTimes measured = slowest->buckets[i];
    for (Time* time : {&measured.ready, &measured.launch, &measured.done}) {
      *time = speed.normalised(*time, index);
    }
    comparison.push_back({static_cast<int>(i), predicted[i], measured});
  }
  return comparison;
}

}  // namespace lockstep
