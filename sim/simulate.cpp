#include "sim/simulate.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <functional>
#include <numeric>
#include <thread>

#include "sim/analysis/breakdown.h"
#include "sim/analysis/buckets.h"
#include "sim/analysis/statistics.h"
#include "sim/analysis/timeline.h"
#include "sim/analysis/uncertainty.h"
#include "sim/core/engine.h"
#include "sim/core/error.h"
#include "sim/core/symmetry.h"
#include "sim/scenario/point.h"
#include "sim/scenario/step_time.h"
#include "sim/simulate_servers.h"
#include "sim/split.h"
#include "sim/workload/strategy.h"

namespace lockstep {
namespace {

/// The share of the step beyond which the host lane is what bounds it.
constexpr double kHostBound = 0.9;

/// Whoever waits as long as a profile says always waits as long.
bool draws_noise(const Scenario& scenario) {
  return scenario.noise && scenario.compute == Compute::real;
}

/// Whether steps differ by more than how the first ones settle.
bool steps_vary(const Scenario& scenario, const Calibration& calibration) {
  const auto drawn = [](const Straggler& straggler) { return varies(straggler); };
  if (scenario.backup_workers > 0 || std::ranges::any_of(scenario.stragglers, drawn)) return true;
  return draws_noise(scenario) && (calibration.noise.step > 0 || calibration.noise.task > 0);
}

/// Cores change their speed for seconds, each for itself, and the slowest of several workers sets
/// the pace. So their processes' factors shift the median of many runs, other than one worker's:
/// drawn anew each step, they shift the median step as much. (GPUs' ranks have profiles of their
/// own.)
double of_several_on_cores(const Point& point, const Profile& profile) {
  const bool several = point.workload.cpu && point.workload.profile_of_worker.size() > 1;
  return several ? profile.spread_between_processes : 0;
}

EngineOptions engine_options(const Scenario& scenario, const Calibration& calibration,
                             const Point& point) {
  EngineOptions options;
  options.iterations = static_cast<std::uint32_t>(scenario.iterations);
  options.seed = scenario.seed;
  if (draws_noise(scenario)) {
    // The factor of a whole process shifts all steps of a run alike: it is what repeats differ by,
    // and stands in the uncertainty, not in the steps. Steps of one profile vary in their own way:
    // a recorded graph hardly at all.
    const Profile& profile = point.workload.profiles.front();
    const double own = profile.spread_between_steps;
    const double step = own > 0 ? own : calibration.noise.step;
    options.noise = {.process = 0,
                     .step = std::hypot(step, of_several_on_cores(point, profile)),
                     .task = calibration.noise.task};
  }
  // Each kind of unlike workers has its own, among what is drawn for it.
  if (!point.workload.unlike.empty()) options.noise = {};
  options.slowdowns = point.slowdowns;
  options.drawn = point.drawn;
  options.network = point.network.get();
  return options;
}

/// When each step ended on the last worker that it waits for: there are `backups` behind it.
std::vector<Time> step_ends(const EngineResult& result, std::uint32_t backups) {
  std::vector<Time> ends(result.step_end.front().size());
  std::vector<Time> by_worker(result.step_end.size());
  for (std::size_t k = 0; k < ends.size(); ++k) {
    for (std::size_t w = 0; w < by_worker.size(); ++w) by_worker[w] = result.step_end[w][k];
    const auto last = by_worker.end() - 1 - static_cast<std::ptrdiff_t>(backups);
    std::ranges::nth_element(by_worker, last);
    ends[k] = *last;
  }
  return ends;
}

/// Durations of the steady steps: from the end of one to that of the next.
std::vector<Time> steady_steps(const std::vector<Time>& ends) {
  std::vector<Time> steps;
  for (std::size_t k = 1; k < ends.size(); ++k) steps.push_back(ends[k] - ends[k - 1]);
  return steps;
}

bool settled(const EngineResult& result) {
  const std::vector<Time> steps = steady_steps(step_ends(result, 0));
  return steps.size() >= 3 && steps.back() == steps[steps.size() - 2] &&
         steps.back() == steps[steps.size() - 3];
}

/// The first of those with which the last step ended.
std::uint32_t slowest_worker(const EngineResult& result, std::uint32_t backups) {
  const Time end = step_ends(result, backups).back();
  const auto ends_it = [end](const std::vector<Time>& ends) { return ends.back() == end; };
  const auto found = std::ranges::find_if(result.step_end, ends_it);
  return static_cast<std::uint32_t>(found - result.step_end.begin());
}

/// Of hosts that differ the others wait for one, whichever worker ends last. `of_slowest`: what is
/// known of worker `slowest`.
Time busiest_host(const TaskGraph& graph, const EngineResult& result, const std::vector<Time>& ends,
                  std::uint32_t slowest, Time of_slowest) {
  Time busiest = of_slowest;
  if (result.spans_of) return busiest;  // nothing is known of the others
  for (std::uint32_t w = 0; w < graph.program_of_worker.size(); ++w) {
    if (w != slowest) busiest = std::max(busiest, host_busy(graph, result, w, ends, 1));
  }
  return busiest;
}

std::size_t tasks_per_iteration(const TaskGraph& graph) {
  std::size_t tasks = 0;
  for (std::uint32_t program : graph.program_of_worker) {
    tasks += graph.programs[program].tasks.size();
  }
  return tasks;
}

/// A run with the spans of all workers; of a large one, where they would not fit, those of the
/// worker that is the slowest after some iterations.
EngineResult run_with_spans(const TaskGraph& graph, EngineOptions options) {
  constexpr std::size_t kMostSpans = 1'000'000;
  constexpr std::uint32_t kSome = 3;
  if (tasks_per_iteration(graph) * options.iterations > kMostSpans) {
    EngineOptions few = options;
    few.iterations = std::min(options.iterations, kSome);
    options.spans_of = slowest_worker(run(graph, few), graph.backups);
  }
  options.record_spans = true;
  return run(graph, options);
}

/// Where they do not vary a few iterations tell what all are like.
EngineResult run_steps(const TaskGraph& graph, const EngineOptions& options, bool vary) {
  constexpr std::uint32_t kEnough = 8;
  if (vary || options.iterations <= kEnough) return run_with_spans(graph, options);
  EngineOptions few = options;
  few.iterations = kEnough;
  EngineResult result = run_with_spans(graph, few);
  return settled(result) ? result : run_with_spans(graph, options);
}

/// Samples of a step, all passes together. One worker takes as many passes.
int total_batch(const Scenario& scenario, int workers) {
  return scenario.total_batch.value_or(scenario.batch_per_worker.value_or(0) * workers) *
         scenario.strategy.accumulate;
}

Bytes peak_memory(const Workload& workload) {
  return std::ranges::max_element(workload.profiles, {}, &Profile::peak)->peak;
}

bool has_input(const Workload& workload) {
  return std::ranges::any_of(workload.profiles, [](const Profile& profile) {
    return profile.input_load > Time{} || profile.input_copy > Time{};
  });
}

struct SimulatedPoint {
  ResultPoint result;
  bool input_known = false;  ///< what batches take to load or copy was measured, or given
};

SimulatedPoint simulate_steps(const Scenario& scenario, const Calibration& calibration,
                              int workers) {
  const bool vary = steps_vary(scenario, calibration);
  const Point point = make_point(scenario, calibration, workers);
  if (strategy_named(point.workload.strategy.kind).has_servers) {
    ResultPoint result = simulate_servers(scenario, calibration, point,
                                          engine_options(scenario, calibration, point));
    result.peak = peak_memory(point.workload);
    return {.result = std::move(result), .input_known = has_input(point.workload)};
  }
  const ReducedRun reduced = reduce_symmetric(compile(point.workload, Phase::steady),
                                              engine_options(scenario, calibration, point));
  const TaskGraph& graph = reduced.graph;
  const EngineResult ran = run_steps(graph, reduced.options, vary);
  const std::vector<Time> ends = step_ends(ran, graph.backups);
  const std::vector<Time> steps = steady_steps(ends);
  const std::uint32_t slowest = ran.spans_of.value_or(slowest_worker(ran, graph.backups));
  const StepParts parts = mean_parts(break_down(graph, ran, slowest, ends), 1);

  ResultPoint result;
  result.workers = workers;
  result.batch_per_worker = batch_of(scenario, workers, 0);
  result.strategy = point.workload.strategy.kind;
  result.step = quantiles(steps);
  result.basis =
      std::max(point.basis, collective_basis(scenario, calibration, workers, graph.collectives));
  // What comes too late is not learned from.
  const double counted = 1 - static_cast<double>(graph.backups) / workers;
  result.throughput = counted * total_batch(scenario, workers) / result.step.mean.seconds();
  result.breakdown = parts.breakdown;
  const Time step = parts.breakdown.step();
  const Time busiest = busiest_host(graph, ran, ends, slowest, parts.host_busy);
  result.host_busy = step > Time{} ? busiest.seconds() / step.seconds() : 0;
  result.host_bound = result.host_busy >= kHostBound;
  result.buckets = bucket_times(graph, ran, slowest);
  result.uncertainty = uncertainty(calibration, point.workload.profiles.front(), parts.breakdown);
  result.uncertainty.drawn = relative_spread(steps);
  result.peak = peak_memory(point.workload);
  return {.result = std::move(result), .input_known = has_input(point.workload)};
}

Time epoch_time(const Scenario& scenario, int workers, Time step) {
  constexpr double kMostSeconds = 9e6;  // 104 days; the clock holds 106
  const std::int64_t steps = steps_per_epoch(scenario, workers);
  if (step.seconds() * static_cast<double>(steps) > kMostSeconds) {
    throw InputError({}, "dataset.samples", "an epoch would take more than a hundred days",
                     "check the number of samples");
  }
  return step * steps;
}

/// With a data set the step is simulated both ways, with its batches loaded and without.
ResultPoint simulate_point(const Scenario& asked_for, const Calibration& calibration, int workers) {
  const Scenario scenario = with_split(asked_for, calibration, workers);
  SimulatedPoint asked = simulate_steps(scenario, calibration, workers);
  ResultPoint& result = asked.result;
  if (!scenario.dataset) return result;
  Time with, without;
  (scenario.input.on ? with : without) = result.step.mean;
  if (asked.input_known) {
    Scenario other = scenario;
    other.input.on = !scenario.input.on;
    (other.input.on ? with : without) =
        simulate_steps(other, calibration, workers).result.step.mean;
  }
  result.epoch_with_input = epoch_time(scenario, workers, with);
  result.epoch_without_input = epoch_time(scenario, workers, without);
  return result;
}

/// What speed-ups are relative to: one worker that nothing slows, in the strategy `single`.
ResultPoint simulate_baseline(Scenario scenario, const Calibration& calibration) {
  scenario.stragglers.clear();
  scenario.backup_workers = 0;
  scenario.dataset.reset();
  if (strategy_named(scenario.strategy.kind).has_servers) scenario.strategy.kind = "single";
  return simulate_point(scenario, calibration, 1);
}

/// Points by falling numbers of workers, so that threads end together; then the baseline, which is
/// the index after the last point.
std::vector<std::size_t> largest_first(const std::vector<int>& workers) {
  std::vector<std::size_t> order(workers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return workers[i]; });
  order.push_back(workers.size());
  return order;
}

/// Calls body(0) .. body(count - 1) on several threads; rethrows the first failure by index.
template <typename Body>
void for_each_index(std::size_t count, unsigned threads, const Body& body) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::exception_ptr> failures(count);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        body(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> pool;
    const std::size_t helpers = std::min<std::size_t>(threads, count);
    for (std::size_t i = 1; i < helpers; ++i) pool.emplace_back(work);
    work();
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace

Prediction simulate(const Scenario& scenario, const Calibration& calibration, unsigned threads,
                    const std::function<void()>& after_point) {
  if (!scenario.step_times.empty()) {
    Scenario at_calibrated_times = scenario;
    at_calibrated_times.step_times.clear();
    Prediction prediction =
        simulate(at_calibrated_times, with_step_times(scenario, calibration), threads, after_point);
    for (ResultPoint& point : prediction.points) point.basis = Basis::extrapolated;
    return prediction;
  }
  Prediction prediction;
  prediction.scenario = scenario.name;
  prediction.model = scenario.model;
  prediction.calibration = calibration.id;
  prediction.weak = scenario.batch_per_worker.has_value();
  prediction.precision = scenario.precision;
  prediction.sync = scenario.sync;
  prediction.graph = scenario.graph;
  const std::vector<int>& workers = scenario.workers;
  prediction.points.resize(workers.size() + 1);  // the last one for the baseline
  const std::vector<std::size_t> order = largest_first(workers);
  for_each_index(order.size(), threads, [&](std::size_t i) {
    const std::size_t at = order[i];
    prediction.points[at] = at == workers.size()
                                ? simulate_baseline(scenario, calibration)
                                : simulate_point(scenario, calibration, workers[at]);
    if (after_point) after_point();
  });
  const double alone = prediction.points.back().throughput;
  prediction.points.pop_back();
  for (ResultPoint& point : prediction.points) {
    point.speedup = point.throughput / alone;
    point.efficiency = point.speedup / point.workers;
  }
  return prediction;
}

Timeline simulate_step(const Scenario& asked_for, const Calibration& calibration, int workers) {
  if (!asked_for.step_times.empty()) {
    Scenario at_calibrated_times = asked_for;
    at_calibrated_times.step_times.clear();
    return simulate_step(at_calibrated_times, with_step_times(asked_for, calibration), workers);
  }
  const Scenario scenario = with_split(asked_for, calibration, workers);
  const Point point = make_point(scenario, calibration, workers);
  EngineOptions options = engine_options(scenario, calibration, point);
  if (strategy_named(point.workload.strategy.kind).has_servers) {
    return server_timeline(scenario, calibration, point, options);
  }
  const TaskGraph graph = compile(point.workload, Phase::steady);
  constexpr std::uint32_t kShown = 4;  // late enough for a host that runs ahead
  options.iterations = kShown + 1;
  options.record_spans = true;
  return step_timeline(graph, run(graph, options), kShown - 1);
}

}  // namespace lockstep
