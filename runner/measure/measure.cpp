#include "runner/measure/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "runner/communicators/rendezvous.h"
#include "runner/data/dataset.h"
#include "runner/data/loader.h"
#include "runner/measure/launcher.h"
#include "runner/measure/origin.h"
#include "runner/measure/parts_folder.h"
#include "runner/measure/results.h"
#include "runner/measure/straggler.h"
#include "runner/measure/visit.h"
#include "runner/measure/worker.h"
#include "runner/models/zoo.h"
#include "sim/core/error.h"
#include "sim/workload/profile_choice.h"

namespace lockstep::runner {

namespace {

namespace fs = std::filesystem;

void prepare_folder(const std::string& out) {
  std::error_code error;
  fs::create_directories(out, error);
  if (error) throw InputError({.file = out}, "--out", error.message());
  remove_own_parts(out);
}

std::string visit_id(const MeasureOptions& options) {
  return options.visit.empty() ? "visit-" + utc_now(/*compact=*/true) : options.visit;
}

void print_collectives(const Measurement& measurement) {
  fmt::print("{:<12} {:>2}  {:>12}  {:>12}\n", "collective", "n", "bytes", "time (p50)");
  for (const CollectiveSample& sample : measurement.collectives) {
    for (const CollectivePoint& point : sample.table.points) {
      fmt::print("{:<12} {:>2}  {:>12}  {:>12}\n", sample.table.collective, sample.table.workers,
                 to_string(point.bytes), to_string(point.p50));
    }
  }
}

void print_runs(const std::vector<Run>& runs) {
  fmt::print("{:<14} {:>6} {:<14} {:>2}  {:>10}  {:>8}  {}\n", "model", "batch", "strategy", "n",
             "step (p50)", "repeats", "parity");
  for (const Run& run : runs) {
    std::vector<Time> steps;
    for (const RunRepeat& repeat : run.repeats) steps.push_back(repeat.step.p50);
    if (steps.empty()) continue;
    std::ranges::sort(steps);
    const std::string parity = run.compute == Compute::replay ? "replayed"
                               : run.parity ? fmt::format("{:.1e}", run.parity->relative_l2)
                                            : "-";
    fmt::print("{:<14} {:>6} {:<14} {:>2}  {:>7.2f} ms  {:>8}  {}\n", run.model,
               run.batch_per_worker, run.strategy.kind, run.workers, steps[steps.size() / 2].ms(),
               steps.size(), parity);
  }
}

/// A table of what was measured, and what to do with it.
void print_summary(const Part& whole, const MeasureOptions& options) {
  const std::string& out = options.out;
  if (options.only_collectives) {
    print_collectives(whole.measurement);
    fmt::print("\nWritten: {}/measurement.json\n", out);
    fmt::print("Next: lockstep calibrate PROFILES.json {}/measurement.json -o calibration.json\n",
               out);
    return;
  }
  print_runs(whole.runs);
  if (!options.calibration.empty()) {
    fmt::print("\nWritten: {}/runs.json\n", out);
    fmt::print("Next: lockstep validate {} {}/runs.json\n", options.calibration, out);
    return;
  }
  fmt::print("\nWritten: {}/measurement.json, {}/runs.json\n", out, out);
  fmt::print("Next: lockstep calibrate {}/measurement.json -o calibration.json\n", out);
}

/// What the workers would find out together is said once, before they start.
void check_files(const MeasureOptions& options) {
  if (options.data != "synthetic") {
    const Dataset dataset = read_dataset(options.data, options.data_directory);
    const LoaderOptions loader{.data = options.data, .workers = options.workers};
    for (const std::string& model : options.models) {
      check_fits(make_model(model, c10::kCPU, options.seed), dataset, loader,
                 std::ranges::max(options.batches));
    }
  }
  check_stragglers(options.stragglers, options.workers);
  if (options.only_collectives && options.workers < 2) {
    throw InputError({}, "--collectives", "one worker has nobody to talk to", "--workers 2");
  }
  if (options.calibration.empty()) return;
  const Calibration calibration = read_calibration(options.calibration);
  if (!on_cpu(calibration)) {
    throw InputError({.file = options.calibration}, "--calibration", "is of GPUs",
                     "workers on cores have another one");
  }
  for (const std::string& model : options.models) {
    for (const int batch : options.batches) profile_to_replay(calibration, model, batch, 1);
  }
}

/// Notes the failure in the run that was under way, if it had been saved before.
void note_failure(Part& whole, const LaunchResult& result) {
  const auto run = std::ranges::find(whole.runs, result.run, &Run::id);
  if (run == whole.runs.end()) return;
  int steps = 0;
  for (const RunRepeat& repeat : run->repeats) steps += repeat.steps;
  run->failure = Failure{.rank = result.rank, .what = result.what, .after_steps = steps};
}

ExitCode launch_all(const MeasureOptions& options, const std::vector<std::string>& arguments) {
  check_files(options);
  prepare_folder(options.out);
  const std::string visit = visit_id(options);
  LaunchResult result;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    Launch launch{.arguments = arguments,
                  .workers = options.workers,
                  .silence_seconds = options.silence_seconds};
    for (const std::string& word :
         {std::string("--repeat"), std::to_string(repeat), std::string("--visit"), visit}) {
      launch.arguments.push_back(word);
    }
    result = launch_workers(launch);
    if (result.interrupted || result.rank >= 0) break;
  }
  Part whole = merge_parts(options.out);
  const bool kept = !whole.measurement.id.empty();
  if (result.rank >= 0) note_failure(whole, result);
  if (kept) write_results(whole, options.out);
  const std::string rest =
      kept ? fmt::format("what was measured before is in {}", options.out) : "nothing was measured";
  if (result.exit_code == static_cast<int>(ExitCode::bad_input)) return ExitCode::bad_input;
  if (result.rank >= 0) {
    throw RunError(
        fmt::format("rank {} {}; the others were stopped; {}", result.rank, result.what, rest));
  }
  if (result.interrupted) throw RunError("interrupted; " + rest);
  print_summary(whole, options);
  return ExitCode::done;
}

}  // namespace

ExitCode measure(const MeasureOptions& options, const std::vector<std::string>& arguments) {
  const auto environment = worker_environment([](const char* name) { return std::getenv(name); },
                                              !options.visit.empty());
  if (!environment) return launch_all(options, arguments);
  const bool alone = options.visit.empty();  // torchrun or the like started us, not a launcher
  MeasureOptions mine = options;
  mine.visit = visit_id(options);
  if (alone) mine.repeats = 1;
  if (alone && environment->rank == 0) prepare_folder(options.out);
  try {
    run_worker(mine, *environment);
  } catch (const InputError&) {
    if (environment->rank == 0) throw;
    return ExitCode::bad_input;  // all workers were given the same; one of them says it
  }
  if (alone && environment->rank == 0) {
    const Part whole = merge_parts(options.out);
    write_results(whole, options.out);
    print_summary(whole, options);
  }
  return ExitCode::done;
}

}  // namespace lockstep::runner
