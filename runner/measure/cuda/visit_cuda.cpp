#include "runner/measure/cuda/visit_cuda.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "runner/measure/balance.h"
#include "runner/measure/clock.h"
#include "runner/measure/closing.h"
#include "runner/measure/cuda/device_cuda.h"
#include "runner/measure/cuda/gpu_info.h"
#include "runner/measure/cuda/mixed_visit.h"
#include "runner/measure/launch_parts.h"
#include "runner/measure/launcher.h"
#include "runner/measure/mixed_cores.h"
#include "runner/measure/origin.h"
#include "runner/measure/straggler.h"
#include "runner/measure/summary.h"
#include "runner/measure/visit_folder.h"
#include "runner/models/zoo.h"
#include "sim/core/error.h"
#include "sim/workload/sharding.h"

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
  if (strategy == "parameter_server") {
    const auto& bound = run.strategy.staleness;
    strategy += fmt::format("-servers{}-{}", run.strategy.servers,
                            bound ? fmt::format("stale{}", *bound) : "free");
  } else if (!run.strategy.split.empty()) {
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

/// InputError where a model has fewer parameters than there are servers.
void check_shards(const MeasureOptions& options) {
  const int servers = servers_beside(options);
  if (servers <= 1) return;
  for (const std::string& name : options.models) {
    std::vector<Bytes> sizes;
    const Model model = make_model(name, c10::kCPU, options.seed);
    for (const at::Tensor& parameter : model.parameters()) {
      sizes.push_back({static_cast<std::int64_t>(parameter.nbytes())});
    }
    shard_parameters(sizes, servers);
  }
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

LaunchResult launch_piece(const MeasureOptions& options, const std::vector<std::string>& arguments,
                          int workers, int repeat) {
  Launch launch{.arguments = arguments,
                .workers = workers + options.cpu_workers + servers_beside(options),
                .silence_seconds = options.silence_seconds,
                .busy_is_alive = false};
  for (const std::string& word :
       {std::string("--repeat"), std::to_string(repeat), std::string("--visit"), options.visit}) {
    launch.arguments.push_back(word);
  }
  return launch_workers(launch);
}

/// Says it from an earlier visit with the same flags, or from quick timings by workers.
void dry_run(MeasureOptions options, const std::vector<std::string>& arguments, int most) {
  options.workers = most;
  if (print_earlier_plan(options)) return;
  options.visit = "dry-run";
  const LaunchResult result = launch_piece(options, arguments, most, 0);
  if (result.interrupted) throw RunError("interrupted; nothing was written");
  if (result.rank >= 0) {
    throw RunError(fmt::format("rank {} {}; nothing was written", result.rank, result.what));
  }
}

/// A visit that starts its workers itself, from where it is.
class LaunchedVisit {
 public:
  LaunchedVisit(const MeasureOptions& options, const std::vector<std::string>& arguments, int most)
      : options_(options),
        arguments_(arguments),
        most_(most),
        first_(options.cpu_workers > 0 ? most : 1),
        record_(open_visit(options)) {
    options_.visit = record_.id;
    if (record_.pieces.empty()) {
      for (int n = first_; n <= most; ++n) {
        record_.pieces.push_back({.name = gpu_piece(n), .least = {}, .full = {}});
      }
    }
    for (const PieceDone& piece : record_.done) {
      for (int n = first_; n <= most; ++n) {
        if (piece.piece == gpu_piece(n)) merge(n, piece.repeat);
      }
    }
  }

  void run() {
    if (record_.finished) {
      fmt::print("{} is complete: nothing is left to measure.\n", options_.out);
      return flush_screen();
    }
    origin_ = make_origin_cuda(options_.command);
    for (int repeat = 0; repeat < record_.repeats; ++repeat) {
      for (int n = first_; n <= most_; ++n) {
        if (!record_.has(repeat, gpu_piece(n))) measure(n, repeat);
      }
    }
    if (!failures_.empty()) throw RunError(failures_ + "; " + kept());
    record_.older = false;
    keep();
    close_visit(record_, options_.out);
    print();
  }

 private:
  void measure(int workers, int repeat) {
    const Moment begin = host_now();
    const LaunchResult result = launch_piece(options_, arguments_, workers, repeat);
    const Time took = Time::nanoseconds(host_now() - begin);
    record_.spent += took;
    merge(workers, repeat);
    keep();  // whatever comes
    if (result.rank < 0 && !result.interrupted) {
      record_.done.push_back({.repeat = repeat, .piece = gpu_piece(workers), .took = took});
    }
    write_visit(record_, visit_file(options_.out));
    if (result.interrupted) throw RunError("interrupted; " + kept());
    if (result.rank < 0) return;
    const std::string failure = fmt::format("{} workers, repeat {}: rank {} {}", workers,
                                            repeat + 1, result.rank, result.what);
    fmt::print(stderr, "lockstep-measure: {}\n", failure);
    failures_ += (failures_.empty() ? "" : "; ") + failure;
  }

  void merge(int workers, int repeat) {
    merge_launch(options_.out, workers + options_.cpu_workers, repeat, whole_.measurement,
                 whole_.runs, whole_.cores_of(options_));
  }

  /// Complete results of an earlier visit stay as they are until this one is complete.
  void keep() {
    if (!record_.older && !whole_.runs.empty()) save(options_, origin_, whole_);
  }

  std::string kept() const { return what_is_kept(record_, options_, arguments_); }

  void print() const {
    fmt::print("{}", run_table(whole_.runs));
    print_bandwidths(whole_.measurement, origin_.machine);
    fmt::print("\nTook {}.", span(record_.spent));
    say_next(options_);
    flush_screen();
  }

  MeasureOptions options_;
  std::vector<std::string> arguments_;
  int most_;
  int first_;  ///< beside a worker on cores all GPUs work
  VisitRecord record_;
  Origin origin_;
  Whole whole_;
  std::string failures_;
};

void launch_all(const MeasureOptions& options, const std::vector<std::string>& arguments) {
  const int most = most_workers_of(options);
  check_stragglers(options.stragglers, most);
  check_shards(options);
  check_cpu_worker(options, most);
  if (options.dry_run) return dry_run(options, arguments, most);
  LaunchedVisit(options, arguments, most).run();
}

void refuse_under_launchers(const MeasureOptions& options) {
  for (const auto& [asked, flag] :
       {std::pair(options.dry_run, "--dry-run"), std::pair(options.resume, "--resume")}) {
    if (asked) {
      throw InputError({}, flag, "is for GPUs whose workers lockstep-measure starts itself",
                       "without torchrun, mpirun or srun");
    }
  }
}

}  // namespace

std::string gpu_piece(int workers) {
  return fmt::format("{} GPU{}", workers, workers == 1 ? "" : "s");
}

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
  if (!launched) refuse_under_launchers(options);
  refuse_across_hosts(options, *environment);
  const int workers = environment->world_size - servers_beside(options);
  if (options.cpu_workers > 0) {
    run_mixed_worker(options, *environment);
  } else {
    run_worker_cuda(options, *environment, launched ? most_workers_of(options) : workers);
  }
  if (!launched && environment->rank == 0) {
    Whole whole;
    merge_launch(options.out, workers, options.repeat, whole.measurement, whole.runs,
                 whole.cores_of(options));
    const Origin origin = make_origin_cuda(options.command);
    save(options, origin, whole);
    fmt::print("{}", run_table(whole.runs));
    print_bandwidths(whole.measurement, origin.machine);
  }
}

}  // namespace lockstep::runner
