#include "calibration/validate.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>

#include "calibration/robust.h"
#include "calibration/speed.h"
#include "calibration/validate_buckets.h"
#include "calibration/validate_tables.h"
#include "sim/core/error.h"
#include "sim/core/units.h"
#include "sim/simulate.h"
#include "sim/workload/profile_choice.h"

namespace lockstep {
namespace {

constexpr int kIterations = 50;
/// Where stragglers are drawn: the median of so many is known to a fiftieth of their spread.
constexpr int kIterationsDrawn = 2000;
/// Workers, from which steps of more are predicted in a group of their own.
constexpr int kFew = 2;

/// What is compared apart, wherever it ran; empty: the usual strategies of sound workers.
std::string own_group(const Run& run) {
  const StrategyOptions& strategy = run.strategy;
  for (const char* kind : {"parameter_server", "horovod", "heterogeneous"}) {
    if (strategy.kind == kind) return kind;
  }
  if (!run.stragglers.empty()) return "stragglers";
  const bool options = strategy.accumulate > 1 || strategy.find_unused_parameters ||
                       strategy.compression != Compression::none;
  return options ? "ddp_options" : "";
}

std::string group_of(const Calibration& calibration, const Run& run, const ResultPoint& point,
                     const PlatformOptions& platform) {
  const std::string replayed = run.compute == Compute::replay ? "_replay" : "";
  const std::string own = own_group(run);
  const std::string where = platform.network ? "_hosts" : on_cpu(calibration) ? "" : "_gpus";
  if (!own.empty()) return own + where + replayed;
  if (platform.network) return "hosts" + replayed;
  if (on_cpu(calibration)) return "cpu" + replayed;
  if (run.strategy.kind == "data_parallel") return run.strategy.kind;
  // Those that exchange each gradient on its own.
  if (run.strategy.kind != "single" && run.strategy.kind != "ddp") return "other_strategies";
  if (run.graph) return "graph";
  return point.host_bound ? "host_bound" : "device_bound";
}

/// The scenario on cores as fast as `index` says they were. A link does not drift with them.
Scenario at_speed(Scenario scenario, const Speed& speed, const SpeedIndex& index) {
  const Factor slowdown = Factor::of(speed.slowdown(index));
  for (int worker = 0; worker < scenario.workers.at(0); ++worker) {
    scenario.stragglers.push_back(
        {.worker = worker, .slowdown = slowdown, .delay = {}, .part = StepPart::step});
  }
  return scenario;
}

/// What each repeat's median would have been at the calibration's speed. On the calibrated host
/// communication is work of the same cores and drifts as compute does; of a step over a network
/// the simulator says how much of it drifts.
std::vector<Time> normalised(const Run& run, const Scenario& scenario, const ResultPoint& predicted,
                             const Calibration& calibration, const Speed& speed) {
  std::vector<Time> normal;
  for (const RunRepeat& repeat : run.repeats) {
    if (run.compute == Compute::replay) {  // who waits does not drift
      normal.push_back(repeat.step.p50);
      continue;
    }
    if (!scenario.platform.network) {
      normal.push_back(speed.normalised(repeat.step.p50, repeat.speed_index));
      continue;
    }
    const Scenario drifted = at_speed(scenario, speed, repeat.speed_index);
    const Time then = simulate(drifted, calibration, 1).points.at(0).step.p50;
    normal.push_back(Time::picoseconds(
        multiply_divide(repeat.step.p50.ps(), predicted.step.p50.ps(), then.ps())));
  }
  return normal;
}

/// Of the steps of all repeats, each taken to the calibration's speed as its repeat's median was.
std::optional<double> share_in_band(const Run& run, const ResultPoint& predicted,
                                    const std::vector<Time>& normal) {
  std::size_t inside = 0, all = 0;
  for (std::size_t i = 0; i < run.repeats.size(); ++i) {
    const RunRepeat& repeat = run.repeats[i];
    if (repeat.step.p50 <= Time{}) continue;
    const double speed = normal[i].seconds() / repeat.step.p50.seconds();
    for (const Time sample : repeat.samples) {
      const double step = sample.seconds() * speed;
      ++all;
      inside += step >= predicted.step.p10.seconds() && step <= predicted.step.p90.seconds();
    }
  }
  if (all == 0) return std::nullopt;
  return static_cast<double>(inside) / static_cast<double>(all);
}

ValidationPoint compare(const Run& run, const ResultPoint& predicted,
                        const std::vector<Time>& normal, bool stable) {
  ValidationPoint point = point_of(run);
  point.predicted = predicted.step.p50;
  point.measured = median_step(run);
  point.measured_normalised = median(normal);
  const double center = point.measured_normalised.seconds();
  if (center <= 0) {
    throw InputError({}, "", "its steps take no time", "measure it again");
  }
  const auto [least, most] = std::ranges::minmax(normal);
  point.repeat_spread = (most - least).seconds() / center;
  point.error = point.predicted.seconds() / center - 1;
  point.host_bound = predicted.host_bound;
  point.stable = stable;
  point.basis = predicted.basis;
  point.in_band = share_in_band(run, predicted, normal);
  return point;
}

/// A card's speed index takes nothing out of its steps, so its runner's word stands.
bool stable(const Run& run, const Speed& speed) {
  if (!speed.drifts()) return run.stable;
  return is_stable(run, run.compute == Compute::replay ? 0 : speed.exponent());
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

/// What is wanted of a group, as shares of one.
struct Wanted {
  std::string_view group;
  std::optional<double> mean, worst = {};
  bool own_question = false;
  bool or_repeats = false;  ///< no prediction is closer to a run than its repeats to each other: of
                            ///< a point half their range is allowed, where that is more than `mean`
};
constexpr std::array kWanted{
    Wanted{"all_reduce_sizes", 0.03, 0.08, true},
    Wanted{"all_reduce_from_n2", 0.10, {}, true},
    Wanted{"all_reduce_from_n3", 0.03, {}, true},
    Wanted{"buckets", {}, 0.05, true},
    Wanted{"extrapolated_n", 0.03, {}, true},
    Wanted{"graph", 0.015, 0.05},
    Wanted{"device_bound", 0.02, 0.06},
    Wanted{"host_bound", 0.05, 0.12, false, true},
    Wanted{"other_strategies", 0.05},
    Wanted{"data_parallel", 0.05},
    Wanted{"horovod_gpus", 0.05},
    Wanted{"ddp_options_gpus", 0.05},
    Wanted{"cpu", 0.05, 0.12},
    Wanted{"hosts", 0.07, 0.15},
    Wanted{"hosts_replay", 0.04, 0.10},
    Wanted{"horovod", 0.10},
    Wanted{"ddp_options", 0.10},
    Wanted{"stragglers", 0.10},
    Wanted{"heterogeneous", 0.10},
    Wanted{"parameter_server", 0.10},
};

double allowed_mean(const ValidationGroup& group, double wanted) {
  double sum = 0;
  int counted = 0;
  for (const ValidationPoint& point : group.points) {
    if (!counts(point)) continue;
    sum += std::max(wanted, point.repeat_spread / 2);
    ++counted;
  }
  return counted > 0 ? sum / counted : wanted;
}

void finish(Validation& validation) {
  std::ranges::sort(validation.groups, {}, &ValidationGroup::name);
  for (ValidationGroup& group : validation.groups) {
    summarise(group);
    const auto* wanted = std::ranges::find(kWanted, group.name, &Wanted::group);
    if (wanted == kWanted.end()) continue;
    group.own_question = wanted->own_question;
    if (std::ranges::none_of(group.points, counts)) continue;
    group.wanted_mean = wanted->mean;
    group.wanted_worst = wanted->worst;
    if (wanted->or_repeats) group.allowed_mean = allowed_mean(group, *wanted->mean);
  }
}

/// As the run states it; collectives across hosts must have been measured where it does not.
PlatformOptions platform_of(const Run& run) {
  PlatformOptions platform;
  if (run.hosts <= 1) return platform;
  platform.devices_per_host = (run.workers + run.hosts - 1) / run.hosts;
  platform.emulated = run.emulated;
  platform.network.emplace();
  platform.network->measured = run.link == Bandwidth{};
  platform.network->bandwidth = run.link;
  platform.network->latency = run.link_latency;
  platform.network->slow_links = run.slow_links;
  return platform;
}

/// The kinds of workers on a host.
std::vector<DeviceClass> classes_of(const Run& run, std::span<const Calibration> known) {
  std::vector<DeviceClass> classes;
  for (const RunDevices& devices : run.devices) {
    const auto costs = std::ranges::find(known, devices.calibration, &Calibration::id);
    if (costs == known.end()) {
      throw InputError({}, "devices",
                       fmt::format("calibration \"{}\" is not given", devices.calibration),
                       "name the calibrations of all its workers");
    }
    DeviceClass one;
    one.calibration = devices.calibration;
    one.count = devices.count;
    one.costs = {std::shared_ptr<const void>(), &*costs};  // owned by who knows it
    classes.push_back(std::move(one));
  }
  return classes;
}

}  // namespace

Time median_step(const Run& run) {
  std::vector<Time> steps;
  for (const RunRepeat& repeat : run.repeats) steps.push_back(repeat.step.p50);
  return median(steps);
}

ValidationPoint point_of(const Run& run) {
  ValidationPoint point;
  point.run = run.id;
  point.model = run.model;
  point.strategy = run.strategy.kind;
  point.batch_per_worker = run.batch_per_worker;
  point.workers = run.workers;
  point.graph = run.graph;
  point.sync = run.sync;
  point.compute = run.compute;
  point.slow_motion = run.slow_motion;
  point.hosts = run.hosts;
  point.link = run.link;
  if (!run.devices.empty()) {
    point.run += fmt::format(", {} on the {}", fmt::join(run.strategy.split, " + "),
                             run.strategy.combine_on_host ? "host" : "device");
  }
  return point;
}

bool counts(const ValidationPoint& point) {
  return point.stable && (point.workers > 1 || point.strategy == "parameter_server");
}

std::optional<double> in_band(const ValidationGroup& group) {
  double sum = 0;
  int points = 0;
  for (const ValidationPoint& point : group.points) {
    if (!counts(point) || !point.in_band) continue;
    sum += *point.in_band;
    ++points;
  }
  if (points == 0) return std::nullopt;
  return sum / points;
}

Scenario scenario_of(const Run& run, const PlatformOptions& platform,
                     std::span<const Calibration> known) {
  Scenario scenario;
  scenario.name = run.id;
  scenario.model = run.model;
  scenario.batch_per_worker = run.batch_per_worker;
  scenario.workers = {run.workers};
  scenario.strategy = run.strategy;
  if (run.strategy.kind == "heterogeneous") {  // shares of one batch
    scenario.batch_per_worker.reset();
    scenario.total_batch = run.batch_per_worker * run.workers;
  }
  scenario.devices = classes_of(run, known);
  scenario.iterations = kIterations;
  scenario.sync = run.sync;
  scenario.graph = run.graph;
  scenario.precision = run.precision;
  scenario.compute = run.compute;
  scenario.slow_motion = run.slow_motion;
  // As stated, or as the run itself says.
  scenario.platform = platform.network ? platform : platform_of(run);
  for (const InjectedStraggler& slowed : run.stragglers) {
    scenario.stragglers.push_back({.worker = slowed.all ? kEveryWorker : slowed.rank,
                                   .slowdown = Factor::of(slowed.factor),
                                   .delay = slowed.delay,
                                   .part = slowed.part,
                                   .slowdown_varies = slowed.factor_varies,
                                   .delay_varies = slowed.delay_varies});
    if (varies(scenario.stragglers.back())) scenario.iterations = kIterationsDrawn;
  }
  // A worker that loads its own batches did so in its profiled steps, too.
  scenario.input.on = run.loaders > 0;
  scenario.input.workers = run.loaders;
  return scenario;
}

Validation validate(const Calibration& calibration, const std::vector<Run>& runs,
                    const PlatformOptions& platform, const std::function<void()>& after_run,
                    std::span<const Calibration> known) {
  const Speed speed(calibration);
  Validation validation;
  validation.calibration = calibration.id;
  validation.groups = validate_tables(calibration);
  const Calibration few = up_to(calibration, kFew);
  for (const Run& run : runs) {
    if (run.failure || run.repeats.empty()) continue;
    try {
      const Scenario scenario = scenario_of(run, platform, known);
      const ResultPoint point = simulate(scenario, calibration, 1).points.at(0);
      const auto normal = normalised(run, scenario, point, calibration, speed);
      group_named(validation, group_of(calibration, run, point, scenario.platform))
          .points.push_back(compare(run, point, normal, stable(run, speed)));
      const bool alike = run.devices.empty() && !scenario.platform.network;
      if (run.workers > kFew && !few.profiles.empty() && alike) {
        group_named(validation, "extrapolated_n")
            .points.push_back(
                compare(run, simulate(scenario, few, 1).points.at(0), normal, stable(run, speed)));
      }
      for (const ValidationPoint& bucket : validate_buckets(calibration, run)) {
        group_named(validation, "buckets").points.push_back(bucket);
        group_named(validation, "buckets").points.back().host_bound = point.host_bound;
      }
    } catch (const InputError& error) {
      throw error.within(fmt::format("run {}", run.id));
    }
    if (after_run) after_run();
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

double share_later(const BucketComparison& steps, Time predicted, Time measured) {
  return predicted.seconds() / std::max(1e-12, steps.predicted_step.seconds()) -
         measured.seconds() / std::max(1e-12, steps.measured_step.seconds());
}

std::vector<BucketComparison> compare_buckets(const Calibration& calibration, const Run& run,
                                              const PlatformOptions& platform) {
  if (run.ranks.empty() || run.repeats.empty() || run.sync == Sync::none) return {};
  const auto last_ready = [](const RunRank& rank) {
    return rank.buckets.empty() ? Time{} : rank.buckets.back().ready;
  };
  const auto slowest = std::ranges::max_element(run.ranks, {}, last_ready);
  if (slowest->buckets.empty()) return {};
  const Speed speed(calibration);
  const SpeedIndex& index = run.repeats.front().speed_index;
  Scenario scenario = scenario_of(run, platform);
  const bool over_network = scenario.platform.network.has_value();
  const bool drifts = run.compute == Compute::real;
  if (over_network && drifts) scenario = at_speed(scenario, speed, index);
  const Prediction prediction = simulate(scenario, calibration, 1);
  const auto& predicted = prediction.points.at(0).buckets;
  const Time recorded = slowest->forward + slowest->backward + slowest->optimizer;
  const auto normal = [&](Time time) {
    return over_network || !drifts ? time : speed.normalised(time, index);
  };
  const bool known = recorded > Time{};
  const Time measured_step = known ? normal(recorded) : median_step(run);
  const Time predicted_step = known ? prediction.points.at(0).step.p50 : measured_step;
  std::vector<BucketComparison> comparison;
  const std::size_t count = std::min(predicted.size(), slowest->buckets.size());
  for (std::size_t i = 0; i < count; ++i) {
    BucketTimes measured = slowest->buckets[i];
    for (Time* time : {&measured.ready, &measured.launch, &measured.done}) *time = normal(*time);
    comparison.push_back(
        {static_cast<int>(i), predicted[i], measured, predicted_step, measured_step});
  }
  return comparison;
}

}  // namespace lockstep
