#include "runner/measure/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "runner/communicators/lost_peers.h"
#include "runner/communicators/rendezvous.h"
#include "runner/data/dataset.h"
#include "runner/data/loader.h"
#include "runner/measure/balance.h"
#include "runner/measure/closing.h"
#include "runner/measure/launcher.h"
#include "runner/measure/origin.h"
#include "runner/measure/progress.h"
#include "runner/measure/straggler.h"
#include "runner/measure/visit.h"
#include "runner/measure/visit_folder.h"
#include "runner/measure/worker.h"
#include "runner/models/zoo.h"
#include "sim/core/error.h"
#include "sim/workload/profile_choice.h"

namespace lockstep::runner {

namespace {

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
  check_split(options, options.workers);
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
    for (const int batch : options.batches) {
      profile_to_replay(calibration, model, options.precision, batch, 1, options.slow_motion);
    }
  }
}

LaunchResult launch_repeat(const MeasureOptions& options, std::vector<std::string> arguments,
                           int repeat, const std::string& visit) {
  arguments.insert(arguments.end(), {"--repeat", std::to_string(repeat), "--visit", visit});
  return launch_workers({.arguments = std::move(arguments),
                         .workers = options.workers + servers_beside(options),
                         .silence_seconds = options.silence_seconds});
}

/// Says what the workers did not take.
bool refused(const LaunchResult& result) {
  if (result.exit_code != static_cast<int>(ExitCode::bad_input)) return false;
  std::fprintf(stderr, "lockstep-measure: %s\n", result.says.c_str());
  return true;
}

[[noreturn]] void throw_failure(const LaunchResult& result, const std::string& kept) {
  if (result.interrupted) throw RunError("interrupted; " + kept);
  throw RunError(
      fmt::format("rank {} {}; all workers were stopped; {}", result.rank, result.what, kept));
}

/// Says it from an earlier visit with the same flags, or from quick timings by workers.
ExitCode dry_run(const MeasureOptions& options, const std::vector<std::string>& arguments) {
  if (print_earlier_plan(options)) return ExitCode::done;
  const LaunchResult result = launch_repeat(options, arguments, 0, "dry-run");
  if (refused(result)) return ExitCode::bad_input;
  if (result.interrupted || result.rank >= 0) throw_failure(result, "nothing was written");
  return ExitCode::done;
}

ExitCode launch_all(const MeasureOptions& options, const std::vector<std::string>& arguments) {
  check_files(options);
  if (options.dry_run) return dry_run(options, arguments);
  VisitRecord record = open_visit(options);
  if (record.finished) {
    fmt::print("{} is complete: nothing is left to measure.\n", options.out);
    flush_screen();
    return ExitCode::done;
  }
  for (int repeat = 0; repeat < record.repeats; ++repeat) {
    if (record.has_all(repeat)) continue;
    const LaunchResult result = launch_repeat(options, arguments, repeat, record.id);
    if (refused(result)) {
      if (!options.resume) forget_visit(options.out);
      return ExitCode::bad_input;
    }
    if (result.interrupted || result.rank >= 0) {
      throw_failure(result, keep_visit(options, options.workers, result, arguments));
    }
    record = read_visit(visit_file(options.out));
  }
  finish_visit(record, options, options.workers);
  return ExitCode::done;
}

/// LibTorch adds the stack.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

/// The part of one worker that somebody else started: torchrun, mpirun, srun.
ExitCode measure_alone(const MeasureOptions& options, const WorkerEnvironment& environment,
                       const std::vector<std::string>& arguments) {
  const bool first = environment.rank == 0;
  MeasureOptions mine = options;
  mine.repeats = 1;
  VisitRecord record;
  if (first && !mine.dry_run) record = open_visit(mine);
  mine.visit = record.id.empty() ? "visit-" + utc_now(/*compact=*/true) : record.id;
  const auto kept = [&](const std::string& why) {
    if (!first || mine.dry_run) return why;
    return fmt::format("{}; {}", why, keep_visit(mine, environment.world_size, {}, arguments));
  };
  try {
    run_worker(mine, environment, [&](const std::string& why) {
      std::fprintf(stderr, "lockstep-measure: %s\n", kept(why).c_str());
      std::_Exit(static_cast<int>(ExitCode::run_failed));
    });
  } catch (const InputError&) {
    if (!first) return ExitCode::bad_input;  // all workers were given the same; one of them says it
    if (!mine.dry_run && !mine.resume) forget_visit(mine.out);
    throw;
  } catch (const std::exception& error) {
    throw RunError(kept(first_line(error.what())));
  }
  if (!first || mine.dry_run) return ExitCode::done;
  finish_visit(read_visit(visit_file(mine.out)), mine, environment.world_size);
  return ExitCode::done;
}

/// The part of one worker that a launcher of ours started: it says what is wrong, not the worker.
ExitCode measure_launched(const MeasureOptions& options, const WorkerEnvironment& environment) {
  try {
    run_worker(options, environment);
    return ExitCode::done;
  } catch (const InputError& error) {
    report_failure(progress_fd(), /*lost=*/false, error.what());
    return ExitCode::bad_input;
  } catch (const LostPeers& error) {
    report_failure(progress_fd(), /*lost=*/true, error.what());
  } catch (const std::exception& error) {
    report_failure(progress_fd(), /*lost=*/false, error.what());
  }
  return ExitCode::run_failed;
}

}  // namespace

ExitCode measure(const MeasureOptions& options, const std::vector<std::string>& arguments) {
  const auto environment = worker_environment([](const char* name) { return std::getenv(name); },
                                              !options.visit.empty());
  if (!environment) return launch_all(options, arguments);
  if (options.visit.empty()) return measure_alone(options, *environment, arguments);
  return measure_launched(options, *environment);
}

}  // namespace lockstep::runner
