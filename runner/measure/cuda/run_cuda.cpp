#include "runner/measure/cuda/run_cuda.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "runner/data/loader.h"
#include "runner/measure/cuda/slow_device.h"
#include "runner/measure/cuda/timing.h"
#include "runner/measure/out_of_memory.h"
#include "runner/measure/server_statistics.h"
#include "runner/measure/statistics.h"
#include "runner/measure/straggler.h"
#include "runner/measure/train.h"
#include "runner/models/zoo.h"
#include "sim/core/error.h"

namespace lockstep::runner {
namespace {

constexpr int kWarmup = 8;  ///< cuDNN's search, DDP's first iterations, the allocator
constexpr int kSettle = 3;  ///< steps before each timed block
constexpr int kFewestTimed = 15, kMostTimed = 400;
constexpr int kStampedSteps = 7;  ///< steps with events inside, apart from the timed ones

constexpr int kFewestWarm = 3;

/// Steps before a timed block, where one takes `step`.
int settle_of(Time step) {
  return within_patience(step * 4, kSettle, 1);
}

/// Stamps the marks of the whole step, on the device's clock.
class StampMarks : public Recorder {
 public:
  explicit StampMarks(Device& device) : device_(device) {}
  void mark(Mark mark, int layer) override {
    if (layer >= 0) return;
    if (mark == Mark::step_begin) begin_ = device_.stamp();
    if (mark == Mark::forward_begin) forward_ = device_.stamp();
    if (mark == Mark::backward_begin) backward_ = device_.stamp();
    if (mark == Mark::optimizer_begin) optimizer_ = device_.stamp();
    if (mark == Mark::optimizer_end) end_ = device_.stamp();
  }
  bool layers() const override { return false; }
  Moment begin() const { return device_.moment(begin_); }
  Time forward() const { return between(forward_, backward_); }
  Time backward() const { return between(backward_, optimizer_); }
  Time optimizer() const { return between(optimizer_, end_); }
  Time step() const { return between(begin_, end_); }

 private:
  Time between(std::size_t from, std::size_t to) const {
    return Time::nanoseconds(device_.moment(to) - device_.moment(from));
  }
  Device& device_;
  std::size_t begin_ = 0, forward_ = 0, backward_ = 0, optimizer_ = 0, end_ = 0;
};

struct Stamped {
  Time forward, backward, optimizer;
  std::vector<BucketTimes> buckets;
};

std::vector<Bytes> sizes_of(const Stamped& step) {
  std::vector<Bytes> sizes;
  for (const BucketTimes& bucket : step.buckets) sizes.push_back(bucket.bytes);
  return sizes;
}

template <class Get>
Time median_of(const std::vector<Stamped>& steps, const Get& get) {
  std::vector<Time> values;
  for (const Stamped& step : steps) values.push_back(get(step));
  return median_time(values);
}

class Training {
 public:
  Training(const GpuWorker& worker, const RunOptionsCuda& options)
      : worker_(worker),
        held_by_others_{worker.device.allocated_bytes()},
        options_(options),
        model_(make_model(options.model, worker.device.torch(), options.seed)),
        strategy_(options.devices != nullptr
                      ? make_data_parallel(model_, *options.devices, worker.device)
                      : make_strategy(options.strategy, model_, worker.partners(), worker.device,
                                      worker.servers)),
        batch_(random_batch(model_, options.batch * devices() * strategy_->passes(), options.seed,
                            worker.device.torch())) {
    LOCKSTEP_ASSERT(devices() == 1 || !options.graph, "several threads are no graph");
    LOCKSTEP_ASSERT(options.stragglers.empty() || !options.graph, "a graph is not slowed");
    trainer_.emplace(model_, *strategy_, SgdOptions{}, nullptr, options.precision);
    // Several threads would all mark.
    step_time_ =
        warm_up(worker_, kWarmup, [this](Recorder* r) { step(devices() == 1 ? r : nullptr); });
    if (!options.stragglers.empty()) {
      slow_down();
      worker_.synchronize();
      worker_.beat();
    }
  }

  std::vector<Run> measure() {
    std::vector<Run> runs;
    const auto eager = [this] { step(); };
    if (options_.eager) {
      for (const Sync sync : options_.syncs) runs.push_back(time(sync, false, eager));
      add_stamps(runs);
    }
    if (options_.graph) measure_graph(runs);
    return runs;
  }

 private:
  int devices() const { return options_.devices != nullptr ? options_.devices->count() : 1; }
  void step(Recorder* recorder = nullptr) {
    if (slowness_) {
      slowness_->next_step();
      slowness_->delay(StepPart::step);
      slowness_->delay(StepPart::input);
    }
    trainer_->step(batch_, recorder);
  }

  /// From here on. All workers learn, so that they do as many steps, whoever is slowed.
  void slow_down() {
    slow_device_.emplace(worker_.device);
    slow_device_->learn([this](Recorder& recorder) {
      step(&recorder);
      worker_.synchronize();
      strategy_->take_buckets();
    });
    slowness_.emplace(options_.stragglers, worker_.rank(), std::numeric_limits<Moment>::max(),
                      options_.draws);
    slowness_->slow(*slow_device_);
    if (!slowness_->any()) return slowness_.reset();
    trainer_.reset();  // its hooks go with it
    trainer_.emplace(model_, *strategy_, SgdOptions{}, &*slowness_, options_.precision);
  }

  void measure_graph(std::vector<Run>& runs) {
    std::unique_ptr<Graph> graph;
    worker_.device.take_peak_bytes();
    const bool fits =
        fits_in_memory([&] { graph = worker_.device.capture([this] { captured_step(); }); });
    graph_peak_ = Bytes{worker_.device.take_peak_bytes()} - held_by_others_;
    if (const auto rank = worker_.first_without_room(fits)) {
      Run run = blank_run_cuda(worker_, options_);
      run.graph = true;
      runs.push_back(out_of_memory(std::move(run), *rank));
    } else {
      const auto replay = [&graph] { graph->replay(); };
      for (const Sync sync : options_.syncs) runs.push_back(time(sync, true, replay));
      worker_.synchronize();
    }
    graph.reset();
    worker_.device.release_memory();  // what comes next takes as much
  }

  /// One that breaks off leaves no stream behind that still takes part in the capture.
  void captured_step() {
    try {
      step();
    } catch (...) {
      if (worker_.communicator != nullptr) worker_.communicator->rejoin();
      throw;
    }
  }

  Run time(Sync sync, bool graph, const std::function<void()>& one) {
    Run run = blank_run_cuda(worker_, options_);
    run.sync = sync;
    run.graph = graph;
    RunRepeat repeat;
    repeat.process = options_.process;
    worker_.device.take_peak_bytes();
    repeat.speed_index.before = reference_kernel_cuda();
    repeat.steps = steps_for(worker_, options_.budget, kFewestTimed, kMostTimed, one);
    const int settle = settle_of(step_time_);
    for (int i = 0; i < settle; ++i) one();
    repeat.warmup = within_patience(step_time_, kWarmup, kFewestWarm) + settle;
    strategy_->take_exchanges();
    repeat.samples = time_steps(worker_, sync, repeat.steps, one);
    repeat.speed_index.after = reference_kernel_cuda();
    repeat.step = quantiles(repeat.samples);
    if (worker_.servers != nullptr) run.servers = seen_of_servers(repeat.samples);
    RunRank rank;
    rank.rank = worker_.rank();
    rank.device = worker_.device.name();
    rank.step = repeat.step.p50;
    rank.peak = graph ? graph_peak_ : Bytes{worker_.device.take_peak_bytes()} - held_by_others_;
    run.repeats.push_back(std::move(repeat));
    run.ranks.push_back(std::move(rank));
    return run;
  }

  /// In the timed steps. Nothing where the strategy has no servers.
  std::optional<ServerStatistics> seen_of_servers(const std::vector<Time>& samples) {
    if (options_.strategy.kind != "parameter_server") return std::nullopt;
    SeenOfServers seen{.exchanges = strategy_->take_exchanges(),
                       .steps = {},
                       .servers = options_.strategy.servers,
                       .batch = options_.batch,
                       .link = {}};
    for (const Time sample : samples) seen.steps.push_back(sample.ns());
    return server_statistics(seen, worker_.communicator, worker_.device.torch());
  }

  Stamped stamped_step() {
    worker_.device.clear_stamps();
    StampMarks marks(worker_.device);
    step(&marks);
    worker_.synchronize();
    worker_.beat();
    Stamped stamped{marks.forward(), marks.backward(), marks.optimizer(), {}};
    for (const BucketMoments& bucket : strategy_->take_buckets()) {
      const auto from_begin = [&](Moment moment) {
        return Time::nanoseconds(std::max<Moment>(0, moment - marks.begin()));
      };
      stamped.buckets.push_back({.bytes = bucket.bytes,
                                 .ready = from_begin(bucket.ready),
                                 .launch = from_begin(bucket.launch),
                                 .done = from_begin(bucket.done)});
    }
    return stamped;
  }

  /// Parts and buckets of eager steps that carry events; they are a little slower than the timed
  /// ones.
  void add_stamps(std::vector<Run>& runs) {
    worker_.barrier();
    worker_.device.set_stamping(true);
    std::vector<Stamped> steps;
    for (int i = 0; i < kStampedSteps; ++i) steps.push_back(stamped_step());
    worker_.device.set_stamping(false);
    steps.erase(steps.begin());  // the first one creates the events
    // What is reduced together may change from step to step.
    std::erase_if(steps, [last = sizes_of(steps.back())](const Stamped& step) {
      return sizes_of(step) != last;
    });
    for (Run& run : runs) {
      RunRank& rank = run.ranks.front();
      rank.forward = median_of(steps, [](const Stamped& step) { return step.forward; });
      rank.backward = median_of(steps, [](const Stamped& step) { return step.backward; });
      rank.optimizer = median_of(steps, [](const Stamped& step) { return step.optimizer; });
      for (std::size_t i = 0; i < steps.front().buckets.size(); ++i) {
        rank.buckets.push_back(
            {.bytes = steps.front().buckets[i].bytes,
             .ready = median_of(steps, [i](const Stamped& step) { return step.buckets[i].ready; }),
             .launch =
                 median_of(steps, [i](const Stamped& step) { return step.buckets[i].launch; }),
             .done = median_of(steps, [i](const Stamped& step) { return step.buckets[i].done; })});
      }
    }
  }

  GpuWorker worker_;
  Bytes held_by_others_;  ///< memory, before this model was made
  Bytes graph_peak_;      ///< a replay takes the memory that its capture took
  RunOptionsCuda options_;
  Model model_;
  std::unique_ptr<Strategy> strategy_;
  std::optional<SlowDevice> slow_device_;
  std::optional<Slowness> slowness_;  ///< none: this worker is sound
  std::optional<Trainer> trainer_;
  Batch batch_;
  Time step_time_;  ///< about, and the same on every worker
};

}  // namespace

Run blank_run_cuda(const GpuWorker& worker, const RunOptionsCuda& options) {
  Run run;
  run.model = options.model;
  run.batch_per_worker = options.batch;
  run.workers = worker.size() * (options.devices != nullptr ? options.devices->count() : 1);
  run.strategy = options.strategy;
  run.precision = to_string(options.precision);
  run.sync = Sync::step;
  run.stragglers = options.stragglers;
  return run;
}

int steps_of_runs_cuda(Time step, Time block) {
  const int timed = steps_within(step, block, kFewestTimed, kMostTimed);
  const int blocks = 2 * 2;  // synchronised and not, eager and as a graph
  return within_patience(step, kWarmup, kFewestWarm) + kStampedSteps +
         blocks * (kTrialSteps + settle_of(step) + timed);
}

std::vector<Run> measure_runs_cuda(const GpuWorker& worker, const RunOptionsCuda& options) {
  return Training(worker, options).measure();
}

}  // namespace lockstep::runner
