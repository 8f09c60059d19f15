// Predicts cases: one-worker times first, then the constants, then every point and shape.
#include "calibration/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "calibration/fit_constants.h"
#include "sim/core/units.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/step_time.h"
#include "sim/simulate.h"

namespace lockstep {
namespace {

using Quantity = PublishedQuantity;

int samples_a_step(const Scenario& scenario, int workers) {
  return scenario.total_batch.value_or(scenario.batch_per_worker.value_or(1) * workers);
}

/// Samples a second, where the figure is a time or a throughput.
std::optional<double> throughput_of(const PublishedPoint& point, const Scenario& scenario,
                                    std::int64_t epoch_samples) {
  switch (point.quantity) {
    case Quantity::time:
      return samples_a_step(scenario, point.workers) / point.published;
    case Quantity::epoch:
      return static_cast<double>(epoch_samples) / point.published;
    case Quantity::throughput:
      return point.published;
    case Quantity::speedup:
    case Quantity::efficiency:
      break;
  }
  return std::nullopt;
}

[[noreturn]] void rethrow_within(const InputError& error, const Location& at) {
  if (!error.location().file.empty()) throw error;
  throw error.within(to_string(at));
}

/// An experiment as it is asked: its scenario, and its model at one worker's published times.
struct Prepared {
  const PublishedExperiment* experiment = nullptr;
  Scenario scenario;        ///< without constants; `step_times` are in the calibration
  Calibration calibration;  ///< scaled
  std::vector<StepTime> base;
};

class CasePrediction {
 public:
  CasePrediction(const PublishedCase& published, const CalibrationSource& calibrations)
      : case_(published) {
    std::map<std::string, std::vector<StepTime>> base = base_times();
    for (const PublishedExperiment& experiment : case_.experiments) {
      prepare(experiment, base[scenario_of(experiment).model], calibrations);
    }
    mark_suspects();
    fit();
  }

  void report(PublishedReport& report) {
    for (std::size_t i = 0; i < case_.constants.size(); ++i) {
      const PublishedConstant& constant = case_.constants[i];
      const double end = std::min(values_[i] / constant.low, constant.high / values_[i]);
      report.constants.push_back({.case_name = case_.name,
                                  .name = constant.name,
                                  .value = readable(constant, values_[i]),
                                  .at_end_of_range = end < 1 + 1e-6});
    }
    for (const Prepared& prepared : prepared_) {
      for (const PublishedPoint& point : prepared.experiment->points) {
        PublishedRow row{.case_name = case_.name,
                         .experiment = prepared.experiment->name,
                         .workers = point.workers,
                         .quantity = point.quantity,
                         .role = role_of(point),
                         .published = point.published,
                         .predicted = {},
                         .why = why_.contains(&point) ? why_.at(&point) : point.why};
        if (row.role != PublishedRole::unpredicted) row.predicted = predicted(prepared, point);
        report.rows.push_back(std::move(row));
      }
    }
    for (const PublishedShape& shape : case_.shapes) report.shapes.push_back(look_at(shape));
  }

 private:
  static std::string readable(const PublishedConstant& constant, double value) {
    return constant.bandwidth ? to_string(Bandwidth{std::llround(value)})
                              : to_string(Time::from_seconds(value));
  }

  static Scenario scenario_of(const PublishedExperiment& experiment,
                              std::span<const std::string> changes = {}) {
    Scenario scenario = to_scenario(experiment.scenario, changes);
    // Figures are medians or means of many steps; what is drawn would only blur them.
    scenario.noise = false;
    return scenario;
  }

  /// Of each model, what one worker takes, from the points marked `base`.
  std::map<std::string, std::vector<StepTime>> base_times() const {
    std::map<std::string, std::vector<StepTime>> times;
    for (const PublishedExperiment& experiment : case_.experiments) {
      for (const PublishedPoint& point : experiment.points) {
        if (point.quantity == Quantity::epoch && case_.samples == 0) {
          throw InputError(point.at, "points.epoch", "the samples of an epoch are not given",
                           "add samples: 50000 to the case");
        }
        if (!point.base) continue;
        const Scenario scenario = scenario_of(experiment);
        const int batch = batch_of(scenario, 1, 0);
        const double rate = throughput_of(point, scenario, case_.samples).value();
        std::vector<StepTime>& of_model = times[scenario.model];
        if (std::ranges::find(of_model, batch, &StepTime::batch) != of_model.end()) {
          throw InputError(point.at, "points.role",
                           fmt::format("{} has a base at batch {} already", scenario.model, batch),
                           "one of them is the base");
        }
        of_model.push_back({.batch = batch, .time = Time::from_seconds(batch / rate)});
      }
    }
    for (auto& [model, of_model] : times) std::ranges::sort(of_model, {}, &StepTime::batch);
    return times;
  }

  void prepare(const PublishedExperiment& experiment, const std::vector<StepTime>& base,
               const CalibrationSource& calibrations) {
    Prepared prepared{.experiment = &experiment,
                      .scenario = scenario_of(experiment),
                      .calibration = {},
                      .base = base};
    Scenario& scenario = prepared.scenario;
    const bool all_unpredicted = std::ranges::all_of(
        experiment.points,
        [](const PublishedPoint& point) { return point.role == PublishedRole::unpredicted; });
    if (scenario.step_times.empty()) scenario.step_times = base;
    prepared.base = scenario.step_times;
    if (!all_unpredicted || experiment.points.empty()) {
      try {
        prepared.calibration = calibrations(scenario.calibration);
        if (!scenario.step_times.empty()) {
          prepared.calibration = with_step_times(scenario, prepared.calibration);
        }
      } catch (const InputError& error) {
        rethrow_within(error, experiment.at);
      }
    }
    scenario.step_times.clear();
    prepared_.push_back(std::move(prepared));
  }

  /// Relative to one worker's throughput at the same batch (weak) or the same total (strong).
  std::optional<double> speedup_published(const Prepared& prepared,
                                          const PublishedPoint& point) const {
    if (point.quantity == Quantity::speedup) return point.published;
    if (point.quantity == Quantity::efficiency) return point.published * point.workers;
    const int batch = batch_of(prepared.scenario, 1, 0);
    const auto found = std::ranges::find(prepared.base, batch, &StepTime::batch);
    if (found == prepared.base.end()) return std::nullopt;
    return throughput_of(point, prepared.scenario, case_.samples).value() /
           (batch / found->time.seconds());
  }

  void suspect(const PublishedPoint& point, const std::string& why) {
    if (point.role == PublishedRole::unpredicted || point.role == PublishedRole::suspect) return;
    if (point.role == PublishedRole::fitted) {
      throw InputError(point.at, "points.role", "a suspect figure cannot be fitted: " + why);
    }
    why_.emplace(&point, why);
  }

  void mark_suspects() {
    for (const Prepared& prepared : prepared_) {
      for (const PublishedPoint& point : prepared.experiment->points) {
        mark_super_linear(prepared, point);
        mark_contradicted(prepared, point);
      }
      mark_neighbours(prepared);
    }
  }

  void mark_super_linear(const Prepared& prepared, const PublishedPoint& point) {
    constexpr double kMost = 1.05;
    const std::optional<double> speedup = speedup_published(prepared, point);
    if (!speedup || *speedup <= kMost * point.workers) return;
    suspect(point,
            fmt::format("super-linear: an efficiency of {:.0f} %", *speedup / point.workers * 100));
  }

  /// A speed-up that does not follow from the throughput printed beside it.
  void mark_contradicted(const Prepared& prepared, const PublishedPoint& point) {
    constexpr double kClose = 0.02;
    if (point.quantity < Quantity::speedup) return;
    const double said = speedup_published(prepared, point).value();
    for (const PublishedPoint& other : prepared.experiment->points) {
      if (other.workers != point.workers || other.quantity >= Quantity::speedup) continue;
      const std::optional<double> follows = speedup_published(prepared, other);
      if (!follows || std::abs(said / *follows - 1) <= kClose) continue;
      suspect(point,
              fmt::format("a speed-up of {:.2f} follows from the figures beside it", *follows));
    }
  }

  /// More workers that are more efficient than fewer: one of both figures is wrong.
  void mark_neighbours(const Prepared& prepared) {
    constexpr double kMost = 1.05;
    for (const PublishedPoint& more : prepared.experiment->points) {
      for (const PublishedPoint& fewer : prepared.experiment->points) {
        if (fewer.workers >= more.workers || fewer.base) continue;
        const auto a = speedup_published(prepared, more), b = speedup_published(prepared, fewer);
        if (!a || !b || *a / more.workers <= kMost * *b / fewer.workers) continue;
        const std::string why =
            fmt::format("{} workers are more efficient than {}: neighbours disagree", more.workers,
                        fewer.workers);
        suspect(more, why);
        suspect(fewer, why);
      }
    }
  }

  PublishedRole role_of(const PublishedPoint& point) const {
    return why_.contains(&point) ? PublishedRole::suspect : point.role;
  }

  std::vector<std::string> changes_at(const PublishedExperiment& experiment,
                                      std::span<const double> values) const {
    std::vector<std::string> changes;
    for (std::size_t i = 0; i < case_.constants.size(); ++i) {
      const PublishedConstant& constant = case_.constants[i];
      if (std::ranges::find(experiment.constants, constant.name) == experiment.constants.end()) {
        continue;
      }
      const std::string value = constant.bandwidth
                                    ? fmt::format("{}B/s", std::llround(values[i]))
                                    : fmt::format("{}ps", Time::from_seconds(values[i]).ps());
      std::string change = constant.set;
      change.replace(change.find("{}"), 2, value);
      changes.push_back(std::move(change));
    }
    return changes;
  }

  ResultPoint simulated(const Prepared& prepared, int workers,
                        std::span<const double> values) const {
    try {
      Scenario scenario =
          scenario_of(*prepared.experiment, changes_at(*prepared.experiment, values));
      scenario.step_times.clear();
      scenario.workers = {workers};
      std::erase_if(scenario.stragglers,
                    [workers](const Straggler& straggler) { return straggler.worker >= workers; });
      return simulate(scenario, prepared.calibration, 1).points.front();
    } catch (const InputError& error) {
      rethrow_within(error, prepared.experiment->at);
    }
  }

  double figure(const ResultPoint& result, Quantity quantity) const {
    switch (quantity) {
      case Quantity::time:
        return result.step.mean.seconds();
      case Quantity::epoch:
        return static_cast<double>(case_.samples) / result.throughput;
      case Quantity::throughput:
        return result.throughput;
      case Quantity::speedup:
        return result.speedup;
      case Quantity::efficiency:
        return result.efficiency;
    }
    return 0;
  }

  double predicted(const Prepared& prepared, const PublishedPoint& point) const {
    return figure(simulated(prepared, point.workers, values_), point.quantity);
  }

  void fit() {
    std::vector<std::pair<const Prepared*, const PublishedPoint*>> fitted;
    for (const Prepared& prepared : prepared_) {
      for (const PublishedPoint& point : prepared.experiment->points) {
        if (point.role != PublishedRole::fitted || point.base) continue;
        if (prepared.experiment->constants.empty()) {
          throw InputError(point.at, "points.role", "no constant is fitted to it");
        }
        fitted.emplace_back(&prepared, &point);
      }
    }
    if (fitted.size() < case_.constants.size()) {
      throw InputError(
          case_.experiments.empty() ? Location{} : case_.experiments.front().at, "constants",
          fmt::format("{} are fitted to {} points", case_.constants.size(), fitted.size()),
          "mark at least as many points `role: fitted`");
    }
    if (case_.constants.empty()) return;
    std::vector<ConstantRange> ranges;
    for (const PublishedConstant& constant : case_.constants) {
      ranges.push_back({constant.low, constant.high});
    }
    const Residuals residuals = [&](std::span<const double> values) {
      std::vector<double> logarithms;
      for (const auto& [prepared, point] : fitted) {
        const double value = figure(simulated(*prepared, point->workers, values), point->quantity);
        logarithms.push_back(std::log(value / point->published));
      }
      return logarithms;
    };
    values_ = fit_constants(residuals, ranges);
  }

  PublishedShapeRow look_at(const PublishedShape& shape) const {
    PublishedShapeRow row{.case_name = case_.name, .says = shape.says, .holds = false, .seen = {}};
    if (shape.check == PublishedShape::Check::mean_of_maxima) {
      look_at_maxima(shape, row);
      return row;
    }
    const auto prepared = std::ranges::find_if(
        prepared_, [&](const Prepared& each) { return each.experiment->name == shape.experiment; });
    LOCKSTEP_ASSERT(prepared != prepared_.end(), "a shape's experiment was looked up when read");
    std::vector<double> steps;
    std::vector<std::string> seen;
    for (const int workers : shape.workers) {
      const Time step = simulated(*prepared, workers, values_).step.mean;
      steps.push_back(step.seconds());
      seen.push_back(fmt::format("{}: {}", workers, to_string(step)));
    }
    row.seen = fmt::format("{}", fmt::join(seen, ", "));
    row.holds = holds(shape, steps);
    return row;
  }

  static bool holds(const PublishedShape& shape, const std::vector<double>& steps) {
    using Check = PublishedShape::Check;
    const double last = steps.back();
    const std::span others(steps.data(), steps.size() - 1);
    std::vector<double> gains;
    for (std::size_t i = 1; i < steps.size(); ++i) gains.push_back(steps[i - 1] - steps[i]);
    switch (shape.check) {
      case Check::slower:
        return std::ranges::all_of(others, [last](double step) { return last > step; });
      case Check::no_gain:
        return std::ranges::all_of(others,
                                   [&](double step) { return last >= step * (1 - shape.within); });
      case Check::falls:
        return std::ranges::all_of(gains, [](double gain) { return gain > 0; });
      case Check::first_gain_largest:
        return std::ranges::all_of(gains.begin() + 1, gains.end(),
                                   [&](double gain) { return gain < gains.front(); });
      case Check::mean_of_maxima:
        break;
    }
    return false;
  }

  /// A step ends with its slowest worker, and who that is changes from step to step.
  static void look_at_maxima(const PublishedShape& shape, PublishedShapeRow& row) {
    const auto steps = static_cast<double>(shape.steps.size());
    std::vector<double> means(shape.steps.front().size());
    double maxima = 0;
    for (const std::vector<Time>& step : shape.steps) {
      maxima += std::ranges::max(step).seconds() / steps;
      for (std::size_t i = 0; i < step.size(); ++i) means[i] += step[i].seconds() / steps;
    }
    const double largest = std::ranges::max(means);
    row.holds = maxima > largest;
    row.seen = fmt::format("mean of the slowest {}, slowest mean {}: {:+.1f} %",
                           to_string(Time::from_seconds(maxima)),
                           to_string(Time::from_seconds(largest)), (maxima / largest - 1) * 100);
  }

  const PublishedCase& case_;
  std::vector<Prepared> prepared_;
  std::map<const PublishedPoint*, std::string> why_;  ///< found suspect here
  std::vector<double> values_;                        ///< of the constants
};

}  // namespace

PublishedReport predict_published(const std::vector<PublishedCase>& cases,
                                  const CalibrationSource& calibrations) {
  PublishedReport report;
  report.cases = cases;
  for (const PublishedCase& each : cases) CasePrediction(each, calibrations).report(report);
  return report;
}

std::optional<double> median_error(const PublishedReport& report) {
  std::vector<double> errors;
  for (const PublishedRow& row : report.rows) {
    if (row.role == PublishedRole::predicted) errors.push_back(std::abs(row.error()));
  }
  if (errors.empty()) return std::nullopt;
  std::ranges::sort(errors);
  const std::size_t half = errors.size() / 2;
  return errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2;
}

}  // namespace lockstep
