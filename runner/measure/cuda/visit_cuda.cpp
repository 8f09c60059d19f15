#include "runner/measure/cuda/visit_cuda.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "runner/measure/balance.h"
#include "runner/measure/closing.h"
#include "runner/measure/cuda/device_cuda.h"
#include "runner/measure/cuda/gpu_info.h"
#include "runner/measure/cuda/mixed_visit.h"
#include "runner/measure/launch_parts.h"
#include "runner/measure/launcher.h"
#include "runner/measure/mixed_cores.h"
#include "runner/measure/origin.h"
#include "runner/measure/parts_folder.h"
#include "runner/measure/summary.h"
#include "sim/core/error.h"

namespace lockstep::runner {
namespace {

Origin make_origin_cuda(const std::string& command) {
  Origin origin = make_origin(command);
  origin.machine.gpus = query_gpus();
  if (!origin.machine.gpus.empty()) {
    origin.machine.host =
        fmt::format("{} x {}", origin.machine.gpus.size(), origin.machine.gpus.front().name);
  }
  origin.machine.links = query_links();
  origin.software.cuda = cuda_version();
  origin.software.nccl = nccl_version();
  origin.software.driver = driver_version();
  return origin;
}

std::string run_id(const std::string& visit, const Run& run) {
  std::string strategy = run.strategy.kind;
  if (!run.strategy.split.empty()) {
    strategy += fmt::format("-split{}-{}", fmt::join(run.strategy.split, "-"),
                            run.strategy.combine_on_host ? "host" : "device");
  }
  return fmt::format("{}/{}-b{}-{}{}-n{}-{}-{}", visit, run.model, run.batch_per_worker, strategy,
                     precision_ending(parse_precision(run.precision)), run.workers,
                     run.graph ? "graph" : "eager", run.sync == Sync::step ? "step" : "none");
}

/// All that was measured so far.
struct Whole {
  Measurement measurement;
  Measurement of_cores;  ///< of the worker on cores beside the GPUs, if there is one
  std::vector<Run> runs;

  Measurement* cores_of(const MeasureOptions& options) {
    return options.cpu_workers > 0 ? &of_cores : nullptr;
  }
};

/// The worker on cores has a calibration of its own, of the same host.
void save_cores(const MeasureOptions& options, Whole& whole) {
  whole.of_cores.id = options.visit + "-cores";
  whole.of_cores.origin = make_origin(options.command);
  whole.of_cores.reference = reference_of(whole.of_cores, {});
  const std::filesystem::path out(options.out);
  write_measurement(whole.of_cores, (out / "measurement-cores.json").string());
  for (Run& run : whole.runs) {
    run.devices = {{.calibration = options.visit, .count = run.workers - options.cpu_workers},
                   {.calibration = whole.of_cores.id, .count = options.cpu_workers}};
  }
}

void save(const MeasureOptions& options, Origin origin, Whole whole) {
  Measurement& measurement = whole.measurement;
  measurement.id = options.visit;
  std::vector<GpuInfo>& under_load = measurement.origin.machine.gpus;
  if (!under_load.empty()) origin.machine.gpus = std::move(under_load);
  measurement.origin = origin;
  measurement.reference = reference_of(measurement, whole.runs);
  for (Run& run : whole.runs) {
    run.id = run_id(options.visit, run);
    run.origin = origin;
    run.calibration = options.visit;
  }
  if (options.cpu_workers > 0) save_cores(options, whole);
  const std::filesystem::path out(options.out);
  write_measurement(measurement, (out / "measurement.json").string());
  if (!whole.runs.empty()) write_runs(whole.runs, (out / "runs.json").string());
}

int most_workers_of(const MeasureOptions& options) {
  const int gpus = gpu_count();
  if (gpus == 0) {
    throw RunError("no GPU is seen here: look at nvidia-smi and CUDA_VISIBLE_DEVICES");
  }
  if (options.workers > gpus) {
    throw InputError({}, "--workers",
                     fmt::format("{} workers, but {} GPUs are here", options.workers, gpus),
                     "one GPU each");
  }
  return options.workers == 0 ? gpus : options.workers;
}

/// One process sees the GPUs of its own host.
void refuse_across_hosts(const MeasureOptions& options, const WorkerEnvironment& environment) {
  const bool one_process =
      std::ranges::find(options.strategies, "data_parallel") != options.strategies.end();
  if (!one_process || environment.local_size == environment.world_size) return;
  throw InputError({}, "--strategies",
                   fmt::format("data_parallel is one process, {} workers are on several hosts",
                               environment.world_size),
                   "leave it out");
}

/// What is wrong with the worker on cores is said before anybody starts.
void check_cpu_worker(const MeasureOptions& options, int gpus) {
  if (options.cpu_workers == 0) return;
  check_split(options, gpus + options.cpu_workers);
  mixed_cores(usable_cores(), gpus, gpus, options.threads);
}

void say_next(const MeasureOptions& options) {
  const std::string& out = options.out;
  const auto calibrate = [&out](const char* from, const char* to) {
    fmt::print("Next: lockstep calibrate {}/{} -o {}\n", out, from, to);
  };
  fmt::print("\nWritten: {0}/measurement.json, {0}/runs.json\n", out);
  if (options.cpu_workers == 0) {
    calibrate("measurement.json", "calibration.json");
    return;
  }
  fmt::print("Written: {}/measurement-cores.json\n", out);
  calibrate("measurement.json", "gpus.json");
  calibrate("measurement-cores.json", "cores.json");
  fmt::print("Then: lockstep validate gpus.json cores.json {}/runs.json\n", out);
}

void launch_all(const MeasureOptions& options, const std::vector<std::string>& arguments) {
  const int most = most_workers_of(options);
  check_cpu_worker(options, most);
  std::filesystem::create_directories(options.out);
  remove_own_parts(options.out);
  const Origin origin = make_origin_cuda(options.command);
  Whole whole;
  std::string failures;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    // Beside a worker on cores all of them work.
    for (int n = options.cpu_workers > 0 ? most : 1; n <= most; ++n) {
      const int workers = n + options.cpu_workers;
      Launch launch{.arguments = arguments,
                    .workers = workers,
                    .silence_seconds = options.silence_seconds,
                    .busy_is_alive = false};
      for (const std::string& word : {std::string("--repeat"), std::to_string(repeat),
                                      std::string("--visit"), options.visit}) {
        launch.arguments.push_back(word);
      }
      const LaunchResult result = launch_workers(launch);
      merge_launch(options.out, workers, repeat, whole.measurement, whole.runs,
                   whole.cores_of(options));
      if (!whole.runs.empty()) save(options, origin, whole);  // kept, whatever comes
      if (result.interrupted) throw RunError("interrupted; what was measured is kept");
      if (result.rank < 0) continue;
      const std::string failure = fmt::format("{} workers, repeat {}: rank {} {}", workers,
                                              repeat + 1, result.rank, result.what);
      fmt::print(stderr, "lockstep-measure: {}\n", failure);
      failures += (failures.empty() ? "" : "; ") + failure;
    }
  }
  fmt::print("{}", run_table(whole.runs));
  print_bandwidths(whole.measurement, origin.machine);
  if (!failures.empty()) throw RunError(failures);
  remove_own_parts(options.out);
  say_next(options);
}

}  // namespace

void measure_cuda(const MeasureOptions& given, const std::vector<std::string>& arguments) {
  MeasureOptions options = given;
  const bool launched = !options.visit.empty();
  if (!launched) options.visit = "visit-" + utc_now(/*compact=*/true);
  const auto environment =
      worker_environment([](const char* name) { return std::getenv(name); }, launched);
  if (!environment) {
    launch_all(options, arguments);
    return;
  }
  refuse_across_hosts(options, *environment);
  if (options.cpu_workers > 0) {
    run_mixed_worker(options, *environment);
  } else {
    run_worker_cuda(options, *environment,
                    launched ? most_workers_of(options) : environment->world_size);
  }
  if (!launched && environment->rank == 0) {
    Whole whole;
    merge_launch(options.out, environment->world_size, options.repeat, whole.measurement,
                 whole.runs, whole.cores_of(options));
    const Origin origin = make_origin_cuda(options.command);
    save(options, origin, whole);
    fmt::print("{}", run_table(whole.runs));
    print_bandwidths(whole.measurement, origin.machine);
  }
}

}  // namespace lockstep::runner
