#include <ATen/Context.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "runner/communicators/gloo.h"
#include "runner/measure/agreement.h"
#include "runner/measure/autocast.h"
#include "runner/measure/batches.h"
#include "runner/measure/cuda/copies_cuda.h"
#include "runner/measure/cuda/gpu_info.h"
#include "runner/measure/cuda/profile_cuda.h"
#include "runner/measure/cuda/run_cuda.h"
#include "runner/measure/cuda/tables_cuda.h"
#include "runner/measure/cuda/timing.h"
#include "runner/measure/cuda/visit_cuda.h"
#include "runner/measure/launch_parts.h"
#include "runner/measure/origin.h"
#include "runner/measure/out_of_memory.h"
#include "runner/measure/parity.h"
#include "runner/measure/progress.h"
#include "runner/strategies/replica_devices_cuda.h"
#include "sim/core/error.h"

namespace lockstep::runner {
namespace {

/// The host's cores in equal parts to its GPUs, whether or not all of them work: a worker then has
/// the same cores at every number of workers.
void bind_to_share(int local_rank, int gpus) {
  const std::vector<int> all = usable_cores();
  const auto share = static_cast<std::ptrdiff_t>(all.size()) / gpus;
  if (share == 0) return;
  const auto begin = all.begin() + local_rank * share;
  bind_to_cores({begin, begin + share});
}

/// Clocks and power mean something only under load.
std::vector<GpuInfo> query_loaded_gpus(const GpuWorker& worker) {
  constexpr int kProducts = 400;  // of 4096^3 in fp32: about a second on a fast card
  const at::NoTF32Guard exact;
  worker.barrier();
  const at::Tensor a = at::randn({4096, 4096}, at::TensorOptions(worker.device.torch()));
  at::Tensor product = at::empty_like(a);
  for (int i = 0; i < kProducts; ++i) at::mm_out(product, a, a);
  std::vector<GpuInfo> gpus;
  if (worker.rank() == 0) gpus = query_gpus();
  worker.synchronize();
  return gpus;
}

/// Exact sums need fp32 throughout and algorithms that are the same each time: of attention, the
/// one that is made of matrix products, since the others add gradients in any order.
class ExactArithmetic {
 public:
  explicit ExactArithmetic(Precision otherwise) : otherwise_(otherwise) {
    use_arithmetic(Precision::fp32);
    set(true);
  }
  ~ExactArithmetic() {
    use_arithmetic(otherwise_);
    set(false);
  }
  ExactArithmetic(const ExactArithmetic&) = delete;
  ExactArithmetic& operator=(const ExactArithmetic&) = delete;

 private:
  static void set(bool exact) {
    at::Context& context = at::globalContext();
    context.setBenchmarkCuDNN(!exact);
    context.setDeterministicCuDNN(exact);
    context.setSDPUseFlash(!exact);
    context.setSDPUseMemEfficient(!exact);
    context.setSDPUseCuDNN(!exact);
  }

  Precision otherwise_;
};

constexpr const char* kDataParallel = "data_parallel";
constexpr const char* kHorovod = "horovod";

/// What rank 0 does with all GPUs alone. The others keep their own idle, without a kernel that
/// waits on it as a barrier of NCCL would, and say nothing, so that a silent rank 0 is noticed.
class OneProcess {
 public:
  /// `store`: null where there is one worker.
  OneProcess(const GpuWorker& worker, Store* store) : worker_(worker), store_(store) {}

  void run(const std::function<void(ReplicaDevices&)>& work) {
    constexpr std::chrono::minutes kMost{5};
    worker_.barrier();
    c10::cuda::CUDACachingAllocator::emptyCache();
    worker_.barrier();  // now there is room
    const std::string key = fmt::format("GPUs given back {}", ++times_);
    if (worker_.rank() > 0) {
      store_->get(key, kMost);
      return;
    }
    try {
      const auto devices = make_gpu_replicas(worker_.device, worker_.size());
      work(*devices);
    } catch (...) {
      store_->set(key, "failed");
      throw;
    }
    store_->set(key, "done");
  }

 private:
  GpuWorker worker_;
  Store* store_;
  int times_ = 0;
};

class VisitWorker {
 public:
  VisitWorker(const MeasureOptions& options, const GpuWorker& worker, Store* store,
              int most_workers)
      : options_(options),
        worker_(worker),
        one_process_(worker, store),
        most_workers_(most_workers),
        block_(Time::milliseconds(options.block_ms)),
        progress_(progress_fd(), worker.rank() == 0) {
    worker_.beat = [this] { progress_.beat(); };
  }

  /// A part that fails does not take the others with it; RunError at the end.
  void run() {
    if (options_.repeat == 0 && worker_.communicator) attempt([this] { check_parities(); });
    for (const std::string& model : options_.models) measure_model(model);
    attempt([this] { measure_tables(); });
    attempt([this] { measure_kernels(); });
    if (options_.repeat == 0 && worker_.size() == most_workers_) {
      attempt([this] { measure_clocks(); });
    }
    save();
    if (!failure_.empty()) throw RunError(failure_);
  }

 private:
  void attempt(const std::function<void()>& part) {
    try {
      part();
    } catch (const std::exception& error) {
      // Others wait for this worker's part in a collective: they are better told at once.
      if (worker_.communicator != nullptr && is_out_of_memory(error)) throw;
      const std::string text = error.what();
      fmt::print(stderr, "lockstep-measure: rank {}: {}\n", worker_.rank(), text);
      failure_ += (failure_.empty() ? "" : "; ") + text.substr(0, text.find('\n'));
    }
  }

  void measure_clocks() {
    say("clocks under load");
    measurement_.origin.machine.gpus = query_loaded_gpus(worker_);
  }

  static int progress_fd() {
    const char* fd = std::getenv("LOCKSTEP_PROGRESS_FD");
    return fd != nullptr ? std::atoi(fd) : -1;
  }

  /// `single` alone; with others, ddp, and per-parameter strategies where the number of workers is
  /// a power of two: they show how a strategy scales, and device time is dear.
  std::vector<StrategyOptions> strategies() const {
    const bool alone = worker_.communicator == nullptr;
    const bool all = std::has_single_bit(static_cast<unsigned>(worker_.size()));
    std::vector<StrategyOptions> chosen;
    for (const std::string& kind : options_.strategies) {
      if ((kind == "single") != alone || (!alone && !all && kind != "ddp")) continue;
      chosen.push_back(options_of(kind, options_));
    }
    return chosen;
  }

  void check_parities() {
    constexpr int kBatch = 8;
    const ExactArithmetic exact(options_.precision);
    for (const std::string& model : options_.models) {
      for (const StrategyOptions& strategy : strategies()) {
        say(fmt::format("parity of {}, {}", model, strategy.kind));
        const Parity parity = strategy.kind == kDataParallel
                                  ? check_in_one_process(model, kBatch)
                                  : check_parity(model, strategy, kBatch, options_.seed,
                                                 *worker_.communicator, worker_.device);
        parities_[{model, strategy.kind}] = parity;
        const double bound = parity_bound(strategy, worker_.size());
        if (parity.relative_l2 <= bound) continue;
        attempt([&] {
          throw RunError(fmt::format(
              "parity: {} on {} GPUs trains {} away from one GPU by {:.1e} of a step; {:.0e} is "
              "allowed",
              strategy.kind, worker_.size(), model, parity.relative_l2, bound));
        });
      }
    }
  }

  Parity check_in_one_process(const std::string& model, int batch) {
    Parity parity;
    one_process_.run([&](ReplicaDevices& devices) {
      parity = check_data_parallel(model, batch * worker_.size(), options_.seed, devices,
                                   worker_.device, [this] { progress_.beat(); });
    });
    return parity;
  }

  void measure_model(const std::string& model) {
    Batches batches = options_.search_batches ? Batches::until_full() : Batches(options_.batches);
    while (const std::optional<int> batch = batches.next()) {
      bool fits = false;
      attempt([&] { fits = measure_configuration(model, *batch); });
      if (!fits) batches.did_not_fit();
      save();
    }
  }

  /// Null where memory does not suffice on some worker, which the runs then say.
  std::unique_ptr<ProfileCuda> make_profile(const std::string& model, int batch) {
    std::unique_ptr<ProfileCuda> profile;
    const bool fits = fits_in_memory([&] {
      profile = std::make_unique<ProfileCuda>(model, batch, options_.precision, options_.seed,
                                              worker_, block_);
      profile->rehearse_run();
    });
    const std::optional<int> full = worker_.first_without_room(fits);
    if (!full) return profile;
    profile.reset();
    worker_.device.release_memory();
    say(fmt::format("{} at {}: out of memory", model, batch));
    for (const StrategyOptions& strategy : strategies()) {
      const RunOptionsCuda wanted = run_options(model, batch, strategy);
      runs_.push_back(out_of_memory(blank_run_cuda(worker_, wanted), *full));
    }
    return nullptr;
  }

  /// The runs and the profile of a configuration take turns: hosts drift within seconds. Whether it
  /// fits into memory.
  bool measure_configuration(const std::string& model, int batch) {
    say(fmt::format("{} at {}", model, batch));
    std::unique_ptr<ProfileCuda> profile = make_profile(model, batch);
    if (!profile) return false;
    profile->sample_steps();
    for (const StrategyOptions& strategy : strategies()) {
      attempt([&] { measure_runs(model, batch, strategy); });
      profile->sample_steps();
    }
    profile->measure_undisturbed();
    profiles_.push_back(std::move(profile));
    return true;
  }

  RunOptionsCuda run_options(const std::string& model, int batch,
                             const StrategyOptions& strategy) const {
    RunOptionsCuda wanted;
    wanted.model = model;
    wanted.batch = batch;
    wanted.precision = options_.precision;
    wanted.strategy = strategy;
    wanted.budget = block_;
    wanted.process = options_.repeat;
    wanted.seed = options_.seed;
    return wanted;
  }

  void measure_runs(const std::string& model, int batch, const StrategyOptions& strategy) {
    if (worker_.communicator != nullptr)
      say(fmt::format("{} at {}, {}", model, batch, strategy.kind));
    RunOptionsCuda wanted = run_options(model, batch, strategy);
    if (strategy.kind == kHorovod) wanted.graph = false;  // its thread decides anew in each step
    if (strategy.kind != kDataParallel) {
      keep_runs(measure_runs_cuda(worker_, wanted));
      return;
    }
    wanted.graph = false;  // a graph is recorded by one thread
    one_process_.run([&](ReplicaDevices& devices) {
      wanted.devices = &devices;
      keep_runs(measure_runs_cuda(GpuWorker{worker_.device}, wanted));
    });
  }

  void keep_runs(std::vector<Run> runs) {
    for (Run& run : runs) {
      const auto found = parities_.find({run.model, run.strategy.kind});
      if (found != parities_.end()) run.parity = found->second;
      runs_.push_back(std::move(run));
    }
  }

  void measure_tables() {
    say("tables");
    if (worker_.communicator == nullptr) {
      if (options_.repeat == 0) measure_copies();
      return;
    }
    measure_strategies_collectives();
    if (Communicator* control = worker_.communicator->control(); control != nullptr) {
      say("agreement of hosts");
      measurement_.copies.push_back(measure_agreement(*control));
    }
    if (options_.repeat == 0) {
      // One repeat says how fast they are; no step is predicted from them.
      const std::vector<Bytes> sizes = growing_sizes(kKiB, kLargestCollective, 4);
      add_tables("others", [&] {
        return measure_other_collectives_cuda(
            worker_, {.calibrated = sizes, .held_out = held_out_sizes(sizes, 2)});
      });
    }
    say("interference");
    for (InterferenceSample& sample :
         measure_interference_cuda(*worker_.communicator, worker_.device, options_.precision)) {
      measurement_.interference.push_back(std::move(sample));
    }
  }

  void measure_copies() {
    measurement_.copies.push_back(measure_bucket_in_cuda(worker_.device));
    measurement_.copies.push_back(measure_add_cuda(worker_.device));
    for (CopyTable& table : measure_transfers_cuda(worker_.device)) {
      measurement_.copies.push_back(std::move(table));
    }
    measurement_.launch_queue = measure_launch_queue();
  }

  /// Strategies call them, with arrays of any size; all-reduce decides how long most steps take.
  void measure_strategies_collectives() {
    const std::vector<Bytes> sizes = gradient_sizes(kKiB, kLargestCollective);
    const TableSizes of_all_reduce{
        .calibrated = sizes, .held_out = held_out_sizes(sizes), .refined = true};
    const TableSizes of_broadcast{.calibrated = sizes, .held_out = held_out_sizes(sizes, 2)};
    add_tables("all_reduce", [&] {
      return std::vector{
          measure_collective_cuda(worker_, CollectiveKind::all_reduce, of_all_reduce)};
    });
    add_tables("broadcast", [&] {
      return std::vector{measure_collective_cuda(worker_, CollectiveKind::broadcast, of_broadcast)};
    });
    if (!exchanges_with_root()) return;
    add_tables("gather and scatter", [&] { return measure_root_collectives_cuda(worker_, sizes); });
  }

  bool exchanges_with_root() const {
    return std::ranges::any_of(
        strategies(), [](const StrategyOptions& one) { return one.kind == "gather_scatter"; });
  }

  void add_tables(std::string_view what,
                  const std::function<std::vector<CollectiveTable>()>& measure) {
    say(fmt::format("tables: {}", what));
    CollectiveSample sample;
    sample.process = options_.repeat;
    sample.speed_index.before = reference_kernel_cuda();
    std::vector<CollectiveTable> tables = measure();
    sample.speed_index.after = reference_kernel_cuda();
    for (CollectiveTable& table : tables) {
      sample.table = std::move(table);
      if (worker_.rank() == 0) measurement_.collectives.push_back(sample);
    }
    progress_.beat();
  }

  /// Last, since CUPTI slows the host from its first use on.
  void measure_kernels() {
    say("kernel times");
    for (auto& profile : profiles_) {
      progress_.beat();
      for (ProfileSample& sample : profile->finish(options_.repeat, worker_.size())) {
        measurement_.profiles.push_back(std::move(sample));
      }
      profile.reset();  // the larger batches come later, and need the room
      worker_.device.release_memory();
    }
  }

  void save() const {
    write_part(options_.out, {worker_.size(), options_.repeat, worker_.rank()}, measurement_,
               runs_);
  }

  void say(const std::string& what) {
    progress_.beat();
    const std::string line = fmt::format("repeat {}, {} GPU{}: {}", options_.repeat + 1,
                                         worker_.size(), worker_.size() == 1 ? "" : "s", what);
    progress_.say("", line);
    if (options_.verbose && worker_.rank() == 0) fmt::print(stderr, "{}\n", line);
  }

  const MeasureOptions& options_;
  GpuWorker worker_;
  OneProcess one_process_;
  int most_workers_;
  Time block_;
  Progress progress_;
  std::map<std::pair<std::string, std::string>, Parity> parities_;  ///< by model and strategy
  Measurement measurement_;
  std::vector<Run> runs_;
  std::vector<std::unique_ptr<ProfileCuda>> profiles_;
  std::string failure_;
};

/// Gloo makes the thread that it starts on, and those after it, give way to others: not the one
/// that launches kernels.
std::unique_ptr<Communicator> connect_hosts(const WorkerEnvironment& environment,
                                            const std::shared_ptr<Store>& store) {
  std::unique_ptr<Communicator> control;
  std::exception_ptr failure;
  std::thread([&] {
    try {
      control = make_gloo(environment, environment.world_size, store);
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
  return control;
}

}  // namespace

void run_worker_cuda(const MeasureOptions& options, const WorkerEnvironment& environment,
                     int most_workers) {
  bind_to_share(environment.local_rank, gpu_count());
  CudaDevice device(environment.local_rank);
  use_arithmetic(options.precision);
  std::shared_ptr<Store> store;
  std::unique_ptr<NcclCommunicator> communicator;
  if (environment.world_size > 1) {
    store = meet(environment);
    communicator = std::make_unique<NcclCommunicator>(*store, environment.rank,
                                                      environment.world_size, device);
    communicator->barrier();
    if (std::ranges::find(options.strategies, kHorovod) != options.strategies.end()) {
      communicator->take_control(connect_hosts(environment, store));
    }
  }
  VisitWorker(options, GpuWorker{device, communicator.get()}, store.get(), most_workers).run();
  if (communicator) communicator->barrier();
}

}  // namespace lockstep::runner
