#include <ATen/Context.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "runner/communicators/gloo.h"
#include "runner/measure/agreement.h"
#include "runner/measure/autocast.h"
#include "runner/measure/batches.h"
#include "runner/measure/clock.h"
#include "runner/measure/closing.h"
#include "runner/measure/cuda/copies_cuda.h"
#include "runner/measure/cuda/exact_arithmetic.h"
#include "runner/measure/cuda/gpu_info.h"
#include "runner/measure/cuda/idle_communicator.h"
#include "runner/measure/cuda/one_process.h"
#include "runner/measure/cuda/plan_cuda.h"
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
#include "runner/measure/quick.h"
#include "runner/measure/server_process.h"
#include "runner/measure/server_tables.h"
#include "runner/measure/straggler.h"
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

constexpr const char* kDataParallel = "data_parallel";
constexpr const char* kHorovod = "horovod";
constexpr const char* kParameterServer = "parameter_server";

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

  /// Times quickly what run() would do with each number of GPUs, in one repeat, and prints it.
  /// Tables count as long as they take here, with the most workers. All ranks call.
  void plan() {
    VisitRecord record;
    record.repeats = options_.repeats;
    const Time start = process_age();
    const Moment begin = host_now();
    measure_tables();
    measure_clocks();
    const Time tables = Time::nanoseconds(host_now() - begin);
    std::vector<QuickPassCuda> quick;
    for (const std::string& model : options_.models) time_batches(model, quick);
    for (int n = 1; n <= most_workers_; ++n) {
      Time whole = start + tables;
      for (const QuickPassCuda& one : quick) {
        whole += estimate_cuda(one, block_, static_cast<int>(strategies(n).size()));
      }
      record.pieces.push_back({.name = gpu_piece(n), .least = whole, .full = whole});
    }
    if (worker_.rank() > 0) return;
    MeasureOptions asked = options_;
    asked.workers = most_workers_;
    print_plan(record, asked);
  }

  /// A part that fails does not take the others with it; RunError at the end.
  void run() {
    if (options_.repeat == 0 && worker_.partners()) attempt([this] { check_parities(); });
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
  /// `lets_out`: that memory does not suffice, also where no others have to be told.
  void attempt(const std::function<void()>& part, bool lets_out = false) {
    try {
      part();
    } catch (const std::exception& error) {
      // Others wait for this worker's part in a collective: they are better told at once.
      const bool told = worker_.communicator != nullptr || lets_out;
      if (told && is_out_of_memory(error)) throw;
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
  std::vector<StrategyOptions> strategies() const { return strategies(worker_.size()); }
  std::vector<StrategyOptions> strategies(int workers) const {
    const bool alone = workers == 1;
    const bool all = std::has_single_bit(static_cast<unsigned>(workers));
    std::vector<StrategyOptions> chosen;
    for (const std::string& kind : options_.strategies) {
      if (kind != kParameterServer && (kind == "single") != alone) continue;
      if (!alone && !all && kind != "ddp") continue;
      chosen.push_back(options_of(kind, options_));
    }
    return chosen;
  }

  void check_parities() {
    constexpr int kBatch = 8;
    const ExactArithmetic exact(options_.precision);
    for (const std::string& model : options_.models) {
      for (const StrategyOptions& strategy : strategies()) {
        if (strategy.kind == "single") continue;  // there is nothing else to compare it with
        say(fmt::format("parity of {}, {}", model, strategy.kind));
        const bool replayed = strategy.kind == kParameterServer && strategy.staleness != 0;
        const Parity parity = parity_of(model, strategy, kBatch);
        parities_[{model, strategy.kind}] = parity;
        const double bound = replayed ? 0 : parity_bound(strategy, worker_.size());
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

  /// Of updates one after another: in the order in which the servers applied them.
  Parity parity_of(const std::string& model, const StrategyOptions& strategy, int batch) {
    if (strategy.kind == kDataParallel) return check_in_one_process(model, batch);
    if (strategy.kind == kParameterServer && strategy.staleness != 0) {
      return check_update_order(model, strategy, batch, options_.seed, *worker_.partners(),
                                worker_.device, *worker_.servers, worker_.beat);
    }
    return check_parity(model, strategy, batch, options_.seed, *worker_.partners(), worker_.device,
                        worker_.beat, worker_.servers);
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
      attempt([&] { fits = measure_where_it_fits(model, *batch); });
      if (!fits) batches.did_not_fit();
      save();
    }
  }

  /// A worker that has others learns of their memory in make_profile.
  bool measure_where_it_fits(const std::string& model, int batch) {
    if (worker_.communicator != nullptr) return measure_configuration(model, batch);
    bool fits = false;
    const bool room = fits_in_memory([&] { fits = measure_configuration(model, batch); });
    if (!room) note_no_room(model, batch, 0);
    return room && fits;
  }

  void time_batches(const std::string& model, std::vector<QuickPassCuda>& quick) {
    Batches batches = options_.search_batches ? Batches::until_full() : Batches(options_.batches);
    while (const std::optional<int> batch = batches.next()) {
      say(fmt::format("{} at {}: a few quick timings", model, *batch));
      const auto one = time_quickly_cuda(worker_, model, *batch, options_.precision, options_.seed);
      if (worker_.first_without_room(one.has_value())) {
        batches.did_not_fit();
      } else {
        quick.push_back(*one);
      }
    }
  }

  void note_no_room(const std::string& model, int batch, int rank) {
    worker_.device.release_memory();
    say(fmt::format("{} at {}: out of memory", model, batch));
    for (const StrategyOptions& strategy : strategies()) {
      const RunOptionsCuda wanted = run_options(model, batch, strategy);
      runs_.push_back(out_of_memory(blank_run_cuda(worker_, wanted), rank));
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
    note_no_room(model, batch, *full);
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
      attempt([&] { measure_runs(model, batch, strategy); }, /*lets_out=*/true);
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
    wanted.draws = draws_of_repeat(options_.seed, options_.repeat);
    for (const InjectedStraggler& straggler : options_.stragglers) {
      if (straggler.all || straggler.rank < worker_.size()) wanted.stragglers.push_back(straggler);
    }
    if (!wanted.stragglers.empty()) wanted.graph = false;
    return wanted;
  }

  void measure_runs(const std::string& model, int batch, const StrategyOptions& strategy) {
    if (worker_.communicator != nullptr)
      say(fmt::format("{} at {}, {}", model, batch, strategy.kind));
    RunOptionsCuda wanted = run_options(model, batch, strategy);
    if (strategy.kind == kHorovod) wanted.graph = false;  // its thread decides anew in each step
    if (strategy.kind == kParameterServer) {
      wanted.graph = false;  // the host takes part
      wanted.syncs = {Sync::step};
    }
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
    if (worker_.servers != nullptr && worker_.rank() == 0) measure_servers();
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

  void measure_servers() {
    say("tables: servers");
    add_tables("messages", [this] {
      return std::vector{time_message_table(*worker_.servers, worker_.size(), worker_.beat)};
    });
    for (CopyTable& table : time_server_tables(*worker_.servers, worker_.size(), worker_.beat)) {
      measurement_.copies.push_back(std::move(table));
    }
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

/// Servers share the host's cores with what drives the GPUs.
int server_threads(const MeasureOptions& options, int servers) {
  if (options.threads > 0) return options.threads;
  const int cores = static_cast<int>(usable_cores().size());
  return std::max(1, cores / (gpu_count() + servers));
}

}  // namespace

void run_worker_cuda(const MeasureOptions& options, const WorkerEnvironment& all,
                     int most_workers) {
  const int served_by = servers_beside(options);
  if (is_server(all, served_by)) {
    return run_server(all, server_threads(options, served_by), options.silence_seconds, {});
  }
  const WorkerEnvironment environment = without_servers(all, served_by, /*least=*/1);
  bind_to_share(environment.local_rank, gpu_count());
  CudaDevice device(environment.local_rank);
  use_arithmetic(options.precision);
  std::shared_ptr<Store> store;
  std::unique_ptr<NcclCommunicator> communicator;
  if (all.world_size > 1) store = meet(all);
  if (environment.world_size > 1) {
    communicator = std::make_unique<NcclCommunicator>(*store, environment.rank,
                                                      environment.world_size, device);
    communicator->barrier();
    if (std::ranges::find(options.strategies, kHorovod) != options.strategies.end()) {
      communicator->take_control(
          connect_aside([&] { return make_gloo(environment, environment.world_size, store); }));
    }
  }
  GpuWorker worker{device, communicator.get()};
  std::unique_ptr<PointToPoint> servers;
  std::optional<IdleCommunicator> idle;
  if (served_by > 0) {
    servers = connect_aside([&] { return make_point_to_point(all, store); });
    worker.servers = servers.get();
    worker.idle = &idle.emplace(device);
  }
  VisitWorker visit(options, worker, store.get(), most_workers);
  if (options.dry_run) {
    visit.plan();
  } else {
    visit.run();
  }
  if (environment.rank == 0) dismiss_servers(servers.get(), environment.world_size);
  if (communicator) communicator->barrier();
}

}  // namespace lockstep::runner
