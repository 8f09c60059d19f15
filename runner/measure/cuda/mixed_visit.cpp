#include "runner/measure/cuda/mixed_visit.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "runner/communicators/gloo.h"
#include "runner/measure/append.h"
#include "runner/measure/balance.h"
#include "runner/measure/copies.h"
#include "runner/measure/cpu_profile.h"
#include "runner/measure/cuda/copies_cuda.h"
#include "runner/measure/cuda/exact_arithmetic.h"
#include "runner/measure/cuda/host_copies_cuda.h"
#include "runner/measure/cuda/mixed_run.h"
#include "runner/measure/cuda/profile_cuda.h"
#include "runner/measure/cuda/tables_cuda.h"
#include "runner/measure/cuda/timing.h"
#include "runner/measure/launch_parts.h"
#include "runner/measure/mixed_cores.h"
#include "runner/measure/origin.h"
#include "runner/measure/parity.h"
#include "runner/measure/progress.h"
#include "runner/measure/server_process.h"
#include "sim/core/error.h"

namespace lockstep::runner {
namespace {

constexpr const char* kStrategy = "heterogeneous";

/// What single steps of this worker cost, sampled in between.
class OwnProfile {
 public:
  OwnProfile(const MixedWorker& worker, const std::string& model, int samples)
      : worker_(worker), budget_(Time::milliseconds(worker.options.block_ms)) {
    const MeasureOptions& options = worker.options;
    if (worker.gpu != nullptr) {
      gpu_ = std::make_unique<ProfileCuda>(model, samples, options.precision, options.seed,
                                           *worker.gpu, budget_);
    } else {
      cores_ = std::make_unique<CpuProfile>(model, samples, worker.precision(), options.seed,
                                            worker.device, *worker.reference, worker.beat);
    }
  }

  void sample() {
    worker_.all.barrier();
    if (gpu_) gpu_->sample_steps();
    if (cores_) cores_->sample(budget_);
  }
  /// Behind the last sample, before the first finish() of any.
  void measure_undisturbed() {
    if (gpu_) gpu_->measure_undisturbed();
  }
  std::vector<ProfileSample> finish() {
    const int process = worker_.options.repeat;
    if (gpu_) return gpu_->finish(process, worker_.gpu->size());
    return {cores_->finish(process, worker_.all.rank())};
  }

 private:
  const MixedWorker& worker_;
  Time budget_;
  std::unique_ptr<ProfileCuda> gpu_;
  std::unique_ptr<CpuProfile> cores_;
};

class MixedVisit {
 public:
  MixedVisit(const MixedWorker& worker, Progress& progress)
      : worker_(worker), options_(worker.options), progress_(progress) {}

  void run() {
    if (options_.repeat == 0) {
      for (const std::string& model : options_.models) check_parities(model);
    }
    for (const std::string& model : options_.models) {
      for (const int batch : options_.batches) measure(model, batch);
      save();
    }
    measure_tables();
    say("kernel times");
    for (auto& profile : profiles_) {
      append(measurement_.profiles, profile->finish());
      profile.reset();
      progress_.beat();
    }
    save();
    worker_.all.barrier();
    if (!failure_.empty()) throw RunError(failure_);
  }

 private:
  StrategyOptions strategy_of(std::vector<int> shares, bool on_host) const {
    StrategyOptions strategy;
    strategy.kind = kStrategy;
    strategy.split = std::move(shares);
    strategy.combine_on_host = on_host;
    return strategy;
  }

  static const char* place(bool on_host) { return on_host ? "host" : "device"; }

  /// In unequal shares, so that a weight at the wrong worker shows.
  void check_parities(const std::string& model) {
    constexpr int kOnGpu = 8, kOnCores = 4;
    const ExactArithmetic exact(options_.precision);
    std::vector<int> shares(static_cast<std::size_t>(worker_.all.size()), kOnGpu);
    shares.back() = kOnCores;
    // Rounding of a part of the gradients can exceed that of all of them, where it cancels.
    const double bound = std::max(
        kParityBound, 2 * arithmetic_apart(model, strategy_of(shares, false), options_.seed,
                                           worker_.all, worker_.device, worker_.beat));
    for (const bool on_host : options_.combine_on_host) {
      say(fmt::format("parity of {}, added on the {}", model, place(on_host)));
      const Parity parity = check_parity(model, strategy_of(shares, on_host), kOnGpu, options_.seed,
                                         worker_.all, worker_.device, worker_.beat);
      parities_[{model, on_host}] = parity;
      if (parity.relative_l2 <= bound) continue;
      const std::string what = fmt::format(
          "parity: {} with gradients added on the {} trains {} away from one device by {:.1e} of a "
          "step; {:.1e} is allowed: twice as far as a GPU and cores, each alone, train it apart",
          kStrategy, place(on_host), model, parity.relative_l2, bound);
      fmt::print(stderr, "lockstep-measure: rank {}: {}\n", worker_.all.rank(), what);
      failure_ += (failure_.empty() ? "" : "; ") + what;
    }
  }

  /// Given, as in the first repeat, or found now; even where nobody asked for another.
  std::vector<int> shares_of(const std::string& model, int batch) {
    if (!options_.split.empty()) return options_.split;
    const auto workers = static_cast<std::size_t>(worker_.all.size());
    if (!options_.split_measured) return std::vector<int>(workers, batch);
    for (const Run& run : runs_of_part(options_.out, {worker_.all.size(), 0, 0})) {
      const bool earlier = options_.repeat > 0 && run.model == model;
      if (earlier && run.batch_per_worker == batch) return run.strategy.split;
    }
    say(fmt::format("{} at {}: split", model, batch));
    const auto times = [&](const std::vector<int>& shares) {
      return own_steps(worker_, model, shares);
    };
    return balanced_shares(workers, batch, times, worker_.all.rank() == 0);
  }

  void measure(const std::string& model, int batch) {
    const std::vector<int> shares = shares_of(model, batch);
    say(fmt::format("{} at {}: profile", model, batch));
    auto profile = std::make_unique<OwnProfile>(
        worker_, model, shares.at(static_cast<std::size_t>(worker_.all.rank())));
    profile->sample();
    for (const bool on_host : options_.combine_on_host) {
      say(fmt::format("{} at {}, added on the {}", model, batch, place(on_host)));
      Run run = measure_mixed_run(worker_, model, batch, strategy_of(shares, on_host));
      const auto parity = parities_.find({model, on_host});
      if (parity != parities_.end()) run.parity = parity->second;
      runs_.push_back(std::move(run));
      profile->sample();
    }
    profile->measure_undisturbed();
    profiles_.push_back(std::move(profile));
  }

  /// Device by device: memory of the host is one.
  void measure_tables() {
    worker_.all.barrier();
    if (options_.repeat > 0) return;
    if (worker_.gpu == nullptr) {
      say_tables();
      measurement_.copies = {measure_bucket_copies(worker_.device), measure_adding(worker_.device)};
    }
    worker_.all.barrier();
    if (worker_.all.rank() == 0) {
      say_tables();
      measure_copies(worker_.gpu->device);
    }
    worker_.all.barrier();
    if (worker_.gpu != nullptr && worker_.gpu->communicator != nullptr) measure_all_reduce();
    worker_.all.barrier();
  }

  void measure_copies(CudaDevice& device) {
    measurement_.copies = {measure_bucket_in_cuda(device), measure_add_cuda(device)};
    append(measurement_.copies, measure_transfers_cuda(device));
    measurement_.launch_queue = measure_launch_queue();
  }

  /// What GPUs that hold sums do among themselves.
  void measure_all_reduce() {
    const std::vector<Bytes> sizes = gradient_sizes(kKiB, kLargestCollective);
    CollectiveSample sample;
    sample.process = options_.repeat;
    sample.speed_index.before = worker_.speed();
    sample.table = measure_collective_cuda(
        *worker_.gpu, CollectiveKind::all_reduce,
        {.calibrated = sizes, .held_out = held_out_sizes(sizes), .refined = true});
    sample.speed_index.after = worker_.speed();
    if (worker_.all.rank() == 0) measurement_.collectives.push_back(std::move(sample));
  }

  void save() const {
    write_part(options_.out, {worker_.all.size(), options_.repeat, worker_.all.rank()},
               measurement_, runs_);
  }

  void say_tables() { say("copies and sums"); }

  void say(const std::string& what) {
    progress_.beat();
    const int gpus = worker_.all.gpu_count();
    const std::string line = fmt::format("repeat {}, {} GPU{} and cores: {}", options_.repeat + 1,
                                         gpus, gpus == 1 ? "" : "s", what);
    progress_.say("", line);
    if (options_.verbose && worker_.all.rank() == 0) fmt::print(stderr, "{}\n", line);
  }

  const MixedWorker& worker_;
  const MeasureOptions& options_;
  Progress& progress_;
  std::map<std::pair<std::string, bool>, Parity> parities_;  ///< by model and place of the sum
  Measurement measurement_;
  std::vector<Run> runs_;
  std::vector<std::unique_ptr<OwnProfile>> profiles_;
  std::string failure_;
};

constexpr std::chrono::minutes kPatience{3};  // some measure what others wait for

void run_on_gpu(const MeasureOptions& options, const WorkerEnvironment& environment,
                Progress& progress) {
  const auto store = meet(environment);
  CudaDevice device(environment.local_rank);
  const int gpus = environment.world_size - 1;
  std::unique_ptr<NcclCommunicator> nccl;
  if (gpus > 1) {
    nccl = std::make_unique<NcclCommunicator>(*store, environment.rank, gpus, device);
    nccl->barrier();
  }
  const auto beat = [&progress] { progress.beat(); };
  const GpuWorker gpu{device, nccl.get(), beat};
  const auto copies = make_cuda_copies(device);
  MixedCommunicator all(connect_aside([&] {
                          return make_gloo(environment, environment.world_size, store, kPatience);
                        }),
                        nccl.get(), *copies, *store);
  const MixedWorker worker{options, device, all, &gpu, nullptr, beat};
  MixedVisit(worker, progress).run();
}

void run_on_cores(const MeasureOptions& options, const WorkerEnvironment& environment,
                  std::size_t cores, Progress& progress) {
  keep_memory();
  const auto device = make_cpu_device(static_cast<int>(cores));
  const auto store = meet(environment);
  const auto copies = make_cpu_copies();
  MixedCommunicator all(make_gloo(environment, environment.world_size, store, kPatience), nullptr,
                        *copies, *store);
  ReferenceKernel reference(*device);
  const MixedWorker worker{options, *device,    all,
                           nullptr, &reference, [&progress] { progress.beat(); }};
  MixedVisit(worker, progress).run();
}

}  // namespace

void run_mixed_worker(const MeasureOptions& options, const WorkerEnvironment& environment) {
  if (environment.world_size < 2 || environment.local_size != environment.world_size) {
    throw InputError({}, "--cpu-workers", "GPUs and the cores beside them are of one host",
                     "start a worker for each GPU and one more there");
  }
  const std::vector<int> cores =
      mixed_cores(usable_cores(), environment.world_size - 1, environment.rank, options.threads);
  bind_to_cores(cores);
  use_arithmetic(options.precision);
  Progress progress(progress_fd(), environment.rank == 0);
  if (environment.rank == environment.world_size - 1) {
    run_on_cores(options, environment, cores.size(), progress);
  } else {
    run_on_gpu(options, environment, progress);
  }
}

}  // namespace lockstep::runner
