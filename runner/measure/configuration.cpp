#include "runner/measure/configuration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>

#include "runner/measure/append.h"
#include "runner/measure/balance.h"
#include "runner/measure/bench.h"
#include "runner/measure/clock.h"
#include "runner/measure/estimate.h"
#include "runner/measure/series.h"
#include "runner/measure/server_statistics.h"
#include "runner/measure/statistics.h"
#include "runner/measure/trace.h"
#include "runner/measure/visit.h"

namespace lockstep::runner {

namespace {

constexpr int kWarmup = 3;        // the third step of DDP is the first steady one
constexpr int kReplayWarmup = 2;  // who waits need not get warm, but for new buckets

/// A strategy of all workers together.
struct Shared {
  StrategyOptions strategy;
  std::unique_ptr<Bench> bench;
  RunSeries series{};
  std::vector<ServerExchange> exchanges{};  ///< of the timed steps
};

/// Workers that do not wait for each other take a while to fall into their own rhythm after they
/// have begun a block at once.
constexpr int kFreeBlock = 20;

bool is_free(const StrategyOptions& strategy) {
  return strategy.kind == "parameter_server" && strategy.staleness != 0;
}

class Measuring {
 public:
  Measuring(Worker& worker, const Configuration& configuration);
  void run();

 private:
  bool replayed() const { return configuration_.replay.has_value(); }
  int warmup() const { return replayed() ? kReplayWarmup : kWarmup; }
  bool profiles() const { return !worker_.calibration; }
  std::unique_ptr<Bench> make_bench(const StrategyOptions& strategy) const;
  void warm_up();
  void profile_block(ProfileSeries& series);
  void run_block(Bench& bench, RunSeries& series, int steps);
  void single_round();
  void round();
  std::string run_id(const StrategyOptions& strategy, int workers) const;
  void announce(const std::string& run, const std::string& what) const;
  void add_profile(const ProfileSeries& series, int beside);
  void add_run(const RunSeries& series, const StrategyOptions& strategy, int workers);
  std::size_t steps_done() const;
  void trace(Shared& shared);

  Worker& worker_;
  Configuration configuration_;
  std::unique_ptr<Bench> single_;
  std::deque<Shared> shared_;
  std::vector<int> ready_order_;
  int per_block_ = 1;
  ProfileSeries alone_, beside_;
  RunSeries single_run_;
  Speed last_speed_;
};

Measuring::Measuring(Worker& worker, const Configuration& configuration)
    : worker_(worker), configuration_(configuration), single_(make_bench({.kind = "single"})) {
  for (StrategyOptions strategy : configuration.shared) {
    if (strategy.kind == "heterogeneous" && worker.options.split_measured) {
      strategy.split = balanced_shares(worker, configuration.model, configuration.batch);
    }
    shared_.push_back({.strategy = strategy, .bench = make_bench(strategy)});
  }
}

std::unique_ptr<Bench> Measuring::make_bench(const StrategyOptions& strategy) const {
  const bool shared = strategy.kind != "single";
  const MeasureOptions& options = worker_.options;
  BenchOptions bench{.model = configuration_.model,
                     .batch = configuration_.batch,
                     .strategy = strategy,
                     .data = {.data = options.data,
                              .directory = options.data_directory,
                              .seed = options.seed,
                              .rank = shared ? worker_.rank() : 0,
                              .workers = shared ? worker_.size() : 1,
                              .threads = options.loaders},
                     .precision = options.precision,
                     .seed = options.seed,
                     .replay = shared ? configuration_.replay : configuration_.replay_alone,
                     .servers = shared ? worker_.servers.get() : nullptr,
                     .spin = worker_.spin(),
                     .own_core = worker_.own_core()};
  if (shared) bench.stragglers = options.stragglers;  // a profile is that of a sound worker
  if (!strategy.split.empty()) {
    bench.batch = strategy.split[static_cast<std::size_t>(worker_.rank())];
    if (bench.replay) {
      bench.replay =
          profile_to_replay(*worker_.calibration, configuration_.model, options.precision,
                            bench.batch, worker_.environment.local_size, options.slow_motion);
    }
  }
  bench.draws = draws_of_repeat(options.seed, options.repeat);
  return std::make_unique<Bench>(bench, shared ? worker_.communicator.get() : nullptr,
                                 *worker_.device);
}

std::string Measuring::run_id(const StrategyOptions& strategy, int workers) const {
  const StrategyOptions usual;
  std::string id =
      fmt::format("{}-b{}-{}", configuration_.model, configuration_.batch, strategy.kind);
  if (strategy.bucket_cap != usual.bucket_cap ||
      strategy.first_bucket_cap != usual.first_bucket_cap) {
    id += fmt::format("-caps{}-{}", strategy.first_bucket_cap.count, strategy.bucket_cap.count);
  }
  if (strategy.kind == "parameter_server") {
    id += fmt::format("-servers{}-{}", strategy.servers,
                      strategy.staleness ? fmt::format("stale{}", *strategy.staleness) : "free");
  }
  if (strategy.accumulate > 1) {
    id += fmt::format("-accumulate{}{}", strategy.accumulate, strategy.no_sync ? "-nosync" : "");
  }
  if (strategy.find_unused_parameters) id += "-unused";
  if (strategy.compression == Compression::bf16) id += "-bf16gradients";
  if (strategy.kind == "horovod" && (strategy.cycle_time != usual.cycle_time ||
                                     strategy.fusion_threshold != usual.fusion_threshold)) {
    id += fmt::format("-cycle{}us-fusion{}", strategy.cycle_time.ns() / 1000,
                      strategy.fusion_threshold.count);
  }
  if (!strategy.split.empty()) id += fmt::format("-split{}", fmt::join(strategy.split, "-"));
  id += precision_ending(worker_.options.precision) + fmt::format("-n{}", workers);
  if (workers > 1 && worker_.hosts() > 1) {
    id += fmt::format("-hosts{}", worker_.hosts());
    const std::int64_t link = worker_.options.link.bytes_per_second;
    if (link > 0) id += fmt::format("-{}kbit", link / 125);
  }
  if (!replayed()) return id;
  const int slow_motion = worker_.options.slow_motion;
  return id + (slow_motion > 1 ? fmt::format("-replay-slow{}", slow_motion) : "-replay");
}

void Measuring::announce(const std::string& run, const std::string& what) const {
  worker_.progress.say(
      run, fmt::format("repeat {} of {}: {} batch {}, {}", worker_.options.repeat + 1,
                       worker_.options.repeats, configuration_.model, configuration_.batch, what));
}

/// Profiled and plain steps of `single` by turns.
void Measuring::profile_block(ProfileSeries& series) {
  for (int i = 0; i < per_block_; ++i) {
    series.parts.push_back(single_->profiled_step());
    const TimedStep step = single_->timed_step();
    series.steps.push_back(Time::nanoseconds(step.total - step.input));
    series.inputs.push_back(Time::nanoseconds(step.input));
    worker_.progress.beat();
  }
}

void Measuring::run_block(Bench& bench, RunSeries& series, int steps) {
  for (int i = 0; i < steps; ++i) {
    series.steps.push_back(bench.timed_step());
    worker_.progress.beat();
  }
}

/// What rank 0 does while the others wait.
void Measuring::single_round() {
  const bool mine = configuration_.single && worker_.first();
  if (mine) {
    announce(run_id({.kind = "single"}, 1), "single");
    if (profiles()) profile_block(alone_);
    run_block(*single_, single_run_, per_block_);
  }
  const Speed before = std::exchange(last_speed_, worker_.speed());
  if (!mine) return;
  if (profiles()) alone_.speed.add(before.own, last_speed_.own);
  single_run_.speed.add(before.own, last_speed_.own);
}

/// Every kind of block once, the reference kernel between them.
void Measuring::round() {
  single_round();
  if (worker_.size() == 1) return;
  if (profiles()) {
    announce("", "side by side");
    profile_block(beside_);
    const Speed before = std::exchange(last_speed_, worker_.speed());
    beside_.speed.add(before.own, last_speed_.own);
  }
  for (Shared& shared : shared_) {
    announce(run_id(shared.strategy, worker_.size()), shared.strategy.kind);
    const int steps = is_free(shared.strategy) ? std::max(kFreeBlock, per_block_) : per_block_;
    run_block(*shared.bench, shared.series, steps);
    append(shared.exchanges, shared.bench->take_exchanges());
    const Speed before = std::exchange(last_speed_, worker_.speed());
    shared.series.speed.add(before.all, last_speed_.all);
  }
}

std::size_t Measuring::steps_done() const {
  std::size_t most = single_run_.steps.size();
  for (const Shared& shared : shared_) most = std::max(most, shared.series.steps.size());
  return most;
}

void Measuring::warm_up() {
  announce("", "warming up");
  if (!replayed()) ready_order_ = single_->ready_order();
  Moment step = 0;
  for (int i = 0; i < warmup(); ++i) {
    if (i > 0) step = single_->timed_step().total;  // seeing the order was the first
    worker_.progress.beat();
    for (Shared& shared : shared_) shared.bench->timed_step();
    worker_.progress.beat();
  }
  for (Shared& shared : shared_) shared.bench->take_exchanges();  // those do not count
  const int fitting = steps_per_block(Time::nanoseconds(step), worker_.options.steps);
  per_block_ = static_cast<int>(worker_.agree(fitting));
}

void Measuring::run() {
  const Moment begin = host_now();
  warm_up();
  last_speed_ = worker_.speed();
  for (bool more = true; more;) {
    const Moment round_begin = host_now();
    round();
    const Moment now = host_now();
    // Another round only if it fits.
    const bool fits =
        configuration_.budget == 0 || now + (now - round_begin) < begin + configuration_.budget;
    const bool wanted =
        static_cast<int>(worker_.first() ? steps_done() : 0) < worker_.options.steps;
    more = worker_.agree(fits && wanted) != 0;
  }
  add_profile(alone_, 1);
  add_profile(beside_, worker_.environment.local_size);
  add_run(single_run_, {.kind = "single"}, 1);
  for (Shared& shared : shared_) {
    add_run(shared.series, shared.strategy, worker_.size());
    if (shared.strategy.kind == "parameter_server" && !shared.series.steps.empty()) {
      SeenOfServers seen{.exchanges = std::move(shared.exchanges),
                         .steps = {},
                         .servers = shared.strategy.servers,
                         .batch = configuration_.batch,
                         .link = worker_.hosts() > 1 ? worker_.options.link : Bandwidth{}};
      for (const TimedStep& step : shared.series.steps) seen.steps.push_back(step.total);
      worker_.part.runs.back().servers =
          server_statistics(seen, worker_.communicator.get(), worker_.device->torch());
    }
    if (worker_.options.repeat == 0) trace(shared);
  }
}

void Measuring::add_profile(const ProfileSeries& series, int beside) {
  if (series.parts.empty()) return;
  ProfileSample sample;
  sample.process = worker_.options.repeat;
  sample.rank = worker_.rank();
  sample.speed_index = series.speed.of(series.steps);
  sample.profile = host_profile(single_->model(), series.parts, ready_order_);
  sample.profile.batch = configuration_.batch;
  sample.profile.precision = to_string(worker_.options.precision);
  sample.profile.device = worker_.device->name();
  sample.profile.beside = beside;
  sample.profile.step = median_time(series.steps);
  if (single_->dataset_samples() > 0) sample.profile.input_load = median_time(series.inputs);
  sample.profile.input_bytes = single_->input_bytes();
  sample.steps = series.steps;
  worker_.part.measurement.profiles.push_back(std::move(sample));
}

void Measuring::add_run(const RunSeries& series, const StrategyOptions& strategy, int workers) {
  if (series.steps.empty()) return;
  const MeasureOptions& options = worker_.options;
  Run run;
  run.id = run_id(strategy, workers);
  run.origin = worker_.part.measurement.origin;
  run.calibration = worker_.calibration ? worker_.calibration->id : options.visit;
  run.model = configuration_.model;
  run.batch_per_worker = configuration_.batch;
  run.workers = workers;
  run.strategy = strategy;
  run.precision = to_string(options.precision);
  run.sync = Sync::step;
  run.compute = replayed() ? Compute::replay : Compute::real;
  run.slow_motion = options.slow_motion;
  run.dataset = options.data;
  run.dataset_samples = single_->dataset_samples();
  run.loaders = options.loaders;
  if (workers > 1) {
    run.hosts = worker_.hosts();
    run.emulated = worker_.emulated();
    run.link = options.link;
    run.link_latency = options.link_latency;
    run.slow_links = options.slow_links;
    run.stragglers = options.stragglers;
    const auto parity = configuration_.parity.find(strategy.kind);
    if (parity != configuration_.parity.end()) run.parity = parity->second;
  }
  add_repeat(series, warmup(), worker_, run);
  worker_.part.runs.push_back(std::move(run));
}

/// A step that everybody records layer by layer; not one of the timed ones.
void Measuring::trace(Shared& shared) {
  worker_.barrier();
  const Moment origin = worker_.agree(host_now());
  const Timeline mine = shared.bench->traced_step(worker_.rank(), origin);
  write_measured_timeline(worker_, run_id(shared.strategy, worker_.size()), mine);
}

}  // namespace

void measure_configuration(Worker& worker, const Configuration& configuration) {
  Measuring(worker, configuration).run();
}

}  // namespace lockstep::runner
