#include "runner/measure/cuda/visit_cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "runner/measure/closing.h"
#include "runner/measure/cuda/device_cuda.h"
#include "runner/measure/cuda/gpu_info.h"
#include "runner/measure/launch_parts.h"
#include "runner/measure/launcher.h"
#include "runner/measure/origin.h"
#include "runner/measure/parts_folder.h"
#include "runner/measure/straggler.h"
#include "runner/measure/summary.h"
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
  }
  return fmt::format("{}/{}-b{}-{}{}-n{}-{}-{}", visit, run.model, run.batch_per_worker, strategy,
                     precision_ending(parse_precision(run.precision)), run.workers,
                     run.graph ? "graph" : "eager", run.sync == Sync::step ? "step" : "none");
}

/// All that was measured so far.
struct Whole {
  Measurement measurement;
  std::vector<Run> runs;
};

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

void launch_all(const MeasureOptions& options, const std::vector<std::string>& arguments) {
  const int most = most_workers_of(options);
  check_stragglers(options.stragglers, most);
  check_shards(options);
  std::filesystem::create_directories(options.out);
  remove_own_parts(options.out);
  const Origin origin = make_origin_cuda(options.command);
  Whole whole;
  std::string failures;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    for (int n = 1; n <= most; ++n) {
      Launch launch{.arguments = arguments,
                    .workers = n + servers_beside(options),
                    .silence_seconds = options.silence_seconds,
                    .busy_is_alive = false};
      for (const std::string& word : {std::string("--repeat"), std::to_string(repeat),
                                      std::string("--visit"), options.visit}) {
        launch.arguments.push_back(word);
      }
      const LaunchResult result = launch_workers(launch);
      merge_launch(options.out, n, repeat, whole.measurement, whole.runs);
      if (!whole.runs.empty()) save(options, origin, whole);  // kept, whatever comes
      if (result.interrupted) throw RunError("interrupted; what was measured is kept");
      if (result.rank < 0) continue;
      const std::string failure =
          fmt::format("{} workers, repeat {}: rank {} {}", n, repeat + 1, result.rank, result.what);
      fmt::print(stderr, "lockstep-measure: {}\n", failure);
      failures += (failures.empty() ? "" : "; ") + failure;
    }
  }
  fmt::print("{}", run_table(whole.runs));
  print_bandwidths(whole.measurement, origin.machine);
  if (!failures.empty()) throw RunError(failures);
  remove_own_parts(options.out);
  fmt::print("\nWritten: {0}/measurement.json, {0}/runs.json\n", options.out);
  fmt::print("Next: lockstep calibrate {}/measurement.json -o calibration.json\n", options.out);
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
  const int workers = environment->world_size - servers_beside(options);
  run_worker_cuda(options, *environment, launched ? most_workers_of(options) : workers);
  if (!launched && environment->rank == 0) {
    Whole whole;
    merge_launch(options.out, workers, options.repeat, whole.measurement, whole.runs);
    const Origin origin = make_origin_cuda(options.command);
    save(options, origin, whole);
    fmt::print("{}", run_table(whole.runs));
    print_bandwidths(whole.measurement, origin.machine);
  }
}

}  // namespace lockstep::runner
