#include "calibration/thread_search.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "calibration/validate.h"
#include "sim/core/error.h"
#include "sim/core/files.h"
#include "sim/records/json_fields.h"
#include "sim/records/json_text.h"
#include "sim/simulate.h"
#include "sim/workload/profile_choice.h"

namespace lockstep {
namespace {

void check_calibrations(std::span<const Calibration> calibrations) {
  std::vector<int> threads;
  for (const Calibration& calibration : calibrations) {
    const int cores = calibrations.front().origin.machine.cores;
    if (!on_cpu(calibration)) {
      throw InputError({}, "calibration", fmt::format("'{}' is of GPUs", calibration.id),
                       "threads are looked for on cores");
    }
    if (calibration.origin.machine.cores != cores) {
      throw InputError({}, "calibration",
                       fmt::format("'{}' has {} cores, '{}' {}", calibrations.front().id, cores,
                                   calibration.id, calibration.origin.machine.cores),
                       "measure all on one machine");
    }
    const int t = compute_threads(calibration);
    if (std::ranges::find(threads, t) != threads.end()) {
      throw InputError(
          {}, "calibration",
          fmt::format("'{}' has {} threads a worker, as another has", calibration.id, t),
          "one for each number: lockstep measure --threads N");
    }
    threads.push_back(t);
  }
}

ThreadPoint predict(Scenario scenario, const Calibration& calibration, int processes, int total) {
  scenario.workers = {processes};
  scenario.batch_per_worker.reset();
  scenario.total_batch = total;
  ThreadPoint point{.processes = processes,
                    .threads = compute_threads(calibration),
                    .total_batch = total,
                    .predicted = simulate(scenario, calibration).points.front(),
                    .measured = {}};
  return point;
}

std::string shape_of(const ThreadPoint& point) {
  return fmt::format("{} x {}", point.processes, point.threads);
}

std::string_view note_of(const ThreadPoint& point) {
  if (!point.stable) return "unstable";
  if (point.predicted.basis == Basis::interpolated) return "interpolated";
  return point.predicted.basis == Basis::extrapolated ? "extrapolated" : "";
}

double mean_error(const std::vector<ThreadPoint>& points) {
  double sum = 0;
  int count = 0;
  for (const ThreadPoint& point : points) {
    if (!point.measured) continue;
    sum += std::abs(point.error);
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

const ThreadPoint* fastest_measured(const std::vector<ThreadPoint>& points) {
  const ThreadPoint* best = nullptr;
  for (const ThreadPoint& point : points) {
    if (!point.measured) continue;
    if (best == nullptr || point.measured_throughput() > best->measured_throughput()) best = &point;
  }
  return best;
}

}  // namespace

std::vector<ThreadPoint> search_threads(const Scenario& scenario,
                                        std::span<const Calibration> calibrations,
                                        std::span<const int> total_batches) {
  check_calibrations(calibrations);
  std::vector<ThreadPoint> points;
  for (const Calibration& calibration : calibrations) {
    const int cores = std::max(1, calibration.origin.machine.cores);
    const int most = std::max(1, cores / compute_threads(calibration));
    for (int processes = 1; processes <= most; ++processes) {
      for (const int total : total_batches) {
        if (total < processes) continue;
        points.push_back(predict(scenario, calibration, processes, total));
      }
    }
  }
  std::ranges::stable_sort(points, std::ranges::greater{},
                           [](const ThreadPoint& point) { return point.predicted.throughput; });
  return points;
}

int add_measured(std::vector<ThreadPoint>& points, const Scenario& scenario,
                 std::span<const Calibration> calibrations, const std::vector<Run>& runs) {
  int found = 0;
  for (const Run& run : runs) {
    const auto calibration = std::ranges::find(calibrations, run.calibration, &Calibration::id);
    const bool alone = run.workers == 1 && run.strategy.kind == "single";
    if (calibration == calibrations.end() || run.model != scenario.model || run.failure) continue;
    if (run.strategy.kind != scenario.strategy.kind && !alone) continue;
    const int threads = compute_threads(*calibration);
    for (ThreadPoint& point : points) {
      if (point.processes != run.workers || point.threads != threads || point.measured) continue;
      if (point.total_batch != run.batch_per_worker * run.workers) continue;
      const Validation validation = validate(*calibration, {run});
      if (validation.groups.empty() || validation.groups.front().points.empty()) continue;
      const ValidationPoint& compared = validation.groups.front().points.front();
      point.measured = compared.measured_normalised;
      point.error = point.predicted.step.p50.seconds() / point.measured->seconds() - 1;
      point.repeat_spread = compared.repeat_spread;
      point.stable = compared.stable;
      ++found;
    }
  }
  return found;
}

std::string to_table(const std::vector<ThreadPoint>& points) {
  std::string text = fmt::format("  {:<8} {:>6} {:>9} {:>10} {:>11} {:>10} {:>11} {:>9} {:>8}\n",
                                 "p x t", "batch", "a process", "predicted", "samples/s",
                                 "measured", "samples/s", "error", "repeats");
  for (const ThreadPoint& point : points) {
    text += fmt::format("  {:<8} {:>6} {:>9} {:>10} {:>11.1f}", shape_of(point), point.total_batch,
                        point.predicted.batch_per_worker, to_string(point.predicted.step.p50),
                        point.predicted.throughput);
    if (point.measured) {
      text +=
          fmt::format(" {:>10} {:>11.1f} {:>+7.1f} % {:>6.1f} %", to_string(*point.measured),
                      point.measured_throughput(), point.error * 100, point.repeat_spread * 100);
    } else {
      text += fmt::format(" {:>10} {:>11} {:>9} {:>8}", "-", "-", "-", "-");
    }
    text += fmt::format("  {}\n", note_of(point));
  }
  if (points.empty()) return text;
  text += fmt::format("\nFastest, as predicted: {} (processes x threads) at batch {}.\n",
                      shape_of(points.front()), points.front().total_batch);
  if (const ThreadPoint* best = fastest_measured(points)) {
    text += fmt::format("Fastest, as measured: {} at batch {}. Mean error {:.1f} %.\n",
                        shape_of(*best), best->total_batch, mean_error(points) * 100);
  }
  return text;
}

void write_thread_search(const std::vector<ThreadPoint>& points, const Scenario& scenario,
                         const std::string& file) {
  JsonWriter out = begin_file("threads");
  out.field("scenario", scenario.name);
  out.field("model", scenario.model);
  out.field("strategy", scenario.strategy.kind);
  out.field("mean_error", mean_error(points));
  out.list("points", points, [](JsonWriter& io, const ThreadPoint& point) {
    io.field("processes", point.processes);
    io.field("threads", point.threads);
    io.field("total_batch", point.total_batch);
    io.field("predicted_ns", point.predicted.step.p50);
    io.field("throughput", point.predicted.throughput);
    io.field("measured_ns", point.measured);
    io.field("error", point.measured ? std::optional(point.error) : std::nullopt);
    io.field("repeat_spread", point.repeat_spread);
    io.field("stable", point.stable);
  });
  write_file(file, to_text(out.take()));
}

}  // namespace lockstep
