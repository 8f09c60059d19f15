#include "runner/measure/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runner/measure/bench.h"
#include "runner/measure/clock.h"
#include "runner/measure/statistics.h"
#include "runner/measure/trace.h"

namespace lockstep::runner {

namespace {

constexpr Moment kBlock = 400'000'000;  // ns of steps between two looks at the machine's speed
constexpr int kMostPerBlock = 12;
constexpr double kSteady = 0.25;  // a change that comes late or early leaves half of it: 12 %
constexpr int kWarmup = 3;        // the third step of DDP is the first steady one

/// Reference times around the blocks of a series.
struct SpeedSeries {
  std::vector<Time> before, after;
  void add(Moment first, Moment second) {
    before.push_back(Time::nanoseconds(first));
    after.push_back(Time::nanoseconds(second));
  }

  /// The index by which the series' median step, normalised, is the median of its steps each
  /// normalised by its own block: a machine changes its speed from one block to the next.
  SpeedIndex of(const std::vector<Time>& steps) const {
    const std::size_t per_block = steps.size() / before.size();
    std::vector<double> raw, normalised;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::size_t block = std::min(i / per_block, before.size() - 1);
      raw.push_back(steps[i].seconds());
      normalised.push_back(2 * steps[i].seconds() /
                           (before[block].seconds() + after[block].seconds()));
    }
    const double reference = median(raw) / median(normalised);
    const double first = mean_time(before).seconds(), last = mean_time(after).seconds();
    const double scale = 2 * reference / (first + last);
    return {.before = Time::from_seconds(first * scale), .after = Time::from_seconds(last * scale)};
  }

  /// Whether the machine kept its speed within most blocks: a change in between is corrected by
  /// the mean of both ends, so only as far as it went evenly.
  bool stable() const {
    std::vector<double> changes;
    for (std::size_t i = 0; i < before.size(); ++i) {
      changes.push_back(std::abs(after[i].seconds() / before[i].seconds() - 1));
    }
    return median(changes) <= kSteady;
  }
};

struct ProfileSeries {
  std::vector<StepParts> parts;
  std::vector<Time> steps;   ///< unprofiled
  std::vector<Time> inputs;  ///< of them
  SpeedSeries speed;
};

struct RunSeries {
  std::vector<TimedStep> steps;
  SpeedSeries speed;
};

class Measuring {
 public:
  Measuring(Worker& worker, const Configuration& configuration);
  void run();

 private:
  std::unique_ptr<Bench> make_bench(const std::string& kind) const;
  void profile_block(ProfileSeries& series);
  void run_block(Bench& bench, RunSeries& series);
  void round();
  std::string run_id(const std::string& kind, int workers) const;
  void announce(const std::string& run, const std::string& what) const;
  void add_profile(const ProfileSeries& series, int beside, const std::vector<int>& order);
  void add_run(const RunSeries& series, const std::string& kind, int workers);
  std::size_t steps_done() const;
  void trace();

  Worker& worker_;
  Configuration configuration_;
  std::unique_ptr<Bench> single_, ddp_;
  int per_block_ = 1;
  ProfileSeries alone_, beside_;
  RunSeries single_run_, ddp_run_;
  Speed last_speed_;
};

Measuring::Measuring(Worker& worker, const Configuration& configuration)
    : worker_(worker), configuration_(configuration), single_(make_bench("single")) {
  if (configuration.ddp) ddp_ = make_bench("ddp");
}

std::unique_ptr<Bench> Measuring::make_bench(const std::string& kind) const {
  const bool shared = kind != "single";
  const LoaderOptions data{.data = worker_.options.data,
                           .directory = worker_.options.data_directory,
                           .seed = worker_.options.seed,
                           .rank = shared ? worker_.rank() : 0,
                           .workers = shared ? worker_.size() : 1};
  return std::make_unique<Bench>(
      configuration_.model, configuration_.batch, StrategyOptions{.kind = kind},
      shared ? worker_.communicator.get() : nullptr, *worker_.device, data, worker_.options.seed);
}

std::string Measuring::run_id(const std::string& kind, int workers) const {
  return fmt::format("{}-b{}-{}-n{}", configuration_.model, configuration_.batch, kind, workers);
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

void Measuring::run_block(Bench& bench, RunSeries& series) {
  for (int i = 0; i < per_block_; ++i) {
    series.steps.push_back(bench.timed_step());
    worker_.progress.beat();
  }
}

/// Every kind of block once, the reference kernel between them.
void Measuring::round() {
  const auto next_speed = [this] { return std::exchange(last_speed_, worker_.speed()); };
  if (configuration_.single && worker_.first()) {
    announce(run_id("single", 1), "single");
    profile_block(alone_);
    run_block(*single_, single_run_);
  }
  Speed before = next_speed();
  if (configuration_.single && worker_.first()) {
    alone_.speed.add(before.own, last_speed_.own);
    single_run_.speed.add(before.own, last_speed_.own);
  }
  if (worker_.size() == 1) return;
  announce("", "side by side");
  profile_block(beside_);
  before = next_speed();
  beside_.speed.add(before.own, last_speed_.own);
  if (!ddp_) return;
  announce(run_id("ddp", worker_.size()), "ddp");
  run_block(*ddp_, ddp_run_);
  before = next_speed();
  ddp_run_.speed.add(before.all, last_speed_.all);
}

std::size_t Measuring::steps_done() const {
  return std::max(single_run_.steps.size(), ddp_run_.steps.size());
}

void Measuring::run() {
  const Moment begin = host_now();
  announce("", "warming up");
  const std::vector<int> order = single_->ready_order();
  Moment step = 0;
  for (int i = 0; i < kWarmup; ++i) {
    if (i > 0) step = single_->timed_step().total;  // seeing the order was the first
    worker_.progress.beat();
    if (ddp_) ddp_->timed_step();
    worker_.progress.beat();
  }
  const auto fitting = std::clamp<Moment>(kBlock / std::max<Moment>(step, 1), 1, kMostPerBlock);
  per_block_ = static_cast<int>(worker_.agree(std::min<Moment>(fitting, worker_.options.steps)));

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
  add_profile(alone_, 1, order);
  add_profile(beside_, worker_.size(), order);
  add_run(single_run_, "single", 1);
  add_run(ddp_run_, "ddp", worker_.size());
  if (ddp_ && worker_.options.repeat == 0) trace();
}

void Measuring::add_profile(const ProfileSeries& series, int beside,
                            const std::vector<int>& order) {
  if (series.parts.empty()) return;
  ProfileSample sample;
  sample.process = worker_.options.repeat;
  sample.rank = worker_.rank();
  sample.speed_index = series.speed.of(series.steps);
  sample.profile = host_profile(single_->model(), series.parts, order);
  sample.profile.batch = configuration_.batch;
  sample.profile.device = worker_.device->name();
  sample.profile.beside = beside;
  sample.profile.step = median_time(series.steps);
  if (single_->dataset_samples() > 0) sample.profile.input_load = median_time(series.inputs);
  sample.profile.input_bytes = single_->input_bytes();
  sample.steps = series.steps;
  worker_.part.measurement.profiles.push_back(std::move(sample));
}

void Measuring::add_run(const RunSeries& series, const std::string& kind, int workers) {
  if (series.steps.empty()) return;
  const auto middle = [&series](auto part) {
    std::vector<std::int64_t> values;
    for (const TimedStep& step : series.steps) values.push_back(part(step));
    return Time::nanoseconds(median_ns(values));
  };
  Run run;
  run.id = run_id(kind, workers);
  run.origin = worker_.part.measurement.origin;
  run.calibration = worker_.options.visit;
  run.model = configuration_.model;
  run.batch_per_worker = configuration_.batch;
  run.workers = workers;
  run.strategy.kind = kind;
  run.sync = Sync::step;
  run.stable = series.speed.stable();
  run.dataset = worker_.options.data;
  run.dataset_samples = single_->dataset_samples();
  if (workers > 1) run.parity = configuration_.parity;

  RunRepeat repeat;
  repeat.process = worker_.options.repeat;
  repeat.warmup = kWarmup;
  repeat.steps = static_cast<int>(series.steps.size());
  for (const TimedStep& step : series.steps) {
    repeat.samples.push_back(Time::nanoseconds(step.total));
  }
  repeat.step = quantiles(repeat.samples);
  repeat.input = middle([](const TimedStep& s) { return s.input; });
  repeat.speed_index = series.speed.of(repeat.samples);
  run.repeats.push_back(repeat);

  RunRank rank;
  rank.rank = worker_.rank();
  rank.device = worker_.device->name();
  rank.step = repeat.step.p50;
  rank.forward = middle([](const TimedStep& s) { return s.forward; });
  rank.backward = middle([](const TimedStep& s) { return s.backward; });
  rank.optimizer = middle([](const TimedStep& s) { return s.optimizer; });
  rank.buckets = series.steps.back().buckets;
  for (std::size_t i = 0; i < rank.buckets.size(); ++i) {
    const auto of = [&](auto part) {
      return middle([&](const TimedStep& s) { return part(s.buckets[i]).ns(); });
    };
    rank.buckets[i].ready = of([](const BucketTimes& b) { return b.ready; });
    rank.buckets[i].launch = of([](const BucketTimes& b) { return b.launch; });
    rank.buckets[i].done = of([](const BucketTimes& b) { return b.done; });
  }
  rank.peak = {worker_.device->take_peak_bytes()};
  run.ranks.push_back(std::move(rank));
  worker_.part.runs.push_back(std::move(run));
}

/// A step that everybody records layer by layer; not one of the timed ones.
void Measuring::trace() {
  worker_.barrier();
  const Moment origin = worker_.agree(host_now());
  const Timeline mine = ddp_->traced_step(worker_.rank(), origin);
  write_measured_timeline(worker_, run_id("ddp", worker_.size()), mine);
}

}  // namespace

void measure_configuration(Worker& worker, const Configuration& configuration) {
  Measuring(worker, configuration).run();
}

}  // namespace lockstep::runner
