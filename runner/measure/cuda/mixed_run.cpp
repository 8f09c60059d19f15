#include "runner/measure/cuda/mixed_run.h"

#include <algorithm>
#include <cstdint>

#include "runner/data/loader.h"
#include "runner/measure/clock.h"
#include "runner/measure/cuda/timing.h"
#include "runner/measure/gather.h"
#include "runner/measure/statistics.h"
#include "runner/measure/train.h"
#include "runner/models/zoo.h"
#include "runner/strategies/strategy.h"

namespace lockstep::runner {
namespace {

constexpr int kWarmup = 6;  ///< the choice of algorithms, the allocators
constexpr int kTrial = 3;

/// As many steps as fill the budget, the same on all workers; few where one takes long.
int steps_for(const MixedWorker& worker, Time one) {
  constexpr std::int64_t kLeast = 5, kUsual = 15, kMost = 400;
  const Time budget = Time::milliseconds(worker.options.block_ms);
  const Time longest = Time::milliseconds(4000);  // of a block of fewer than usual
  const std::int64_t step = std::max<std::int64_t>(worker.agree(one).ps(), 1);
  const auto within = [step](Time time) { return time.ps() / step; };
  const auto fewest = std::clamp(within(longest), kLeast, kUsual);
  return static_cast<int>(std::clamp(within(budget), fewest, kMost));
}

}  // namespace

Precision MixedWorker::precision() const {
  const bool none = gpu == nullptr && options.precision == Precision::tf32;
  return none ? Precision::fp32 : options.precision;
}

Time MixedWorker::speed() const {
  return gpu != nullptr ? reference_kernel_cuda() : Time::nanoseconds(reference->measure());
}

void MixedWorker::synchronize() const {
  if (gpu != nullptr) gpu->synchronize();
}

Time MixedWorker::agree(Time mine) const {
  return Time::picoseconds(runner::agree(&all, mine.ps(), c10::kCPU));
}

struct MixedTraining::Parts {
  Parts(const MixedWorker& worker, const std::string& name, int samples,
        const StrategyOptions& options)
      : model(make_model(name, worker.device.torch(), worker.options.seed)),
        strategy(make_strategy(options, model, &worker.all, worker.device)),
        trainer(model, *strategy, {}, nullptr, worker.precision()),
        batch(random_batch(model, samples,
                           worker.options.seed + static_cast<std::uint64_t>(worker.all.rank()),
                           worker.device.torch())) {}

  Model model;
  std::unique_ptr<Strategy> strategy;
  Trainer trainer;
  Batch batch;
};

MixedTraining::MixedTraining(const MixedWorker& worker, const std::string& model, int samples,
                             const StrategyOptions& strategy)
    : worker_(worker), parts_(std::make_unique<Parts>(worker, model, samples, strategy)) {
  for (int i = 0; i < kWarmup; ++i) {
    step();
    worker_.beat();
  }
}

MixedTraining::~MixedTraining() = default;

void MixedTraining::step() {
  parts_->trainer.step(parts_->batch);
  worker_.synchronize();
}

std::vector<Time> MixedTraining::time_steps(int count) {
  std::vector<Time> samples;
  worker_.synchronize();
  worker_.beat();
  worker_.all.barrier();
  Moment before = host_now();
  for (int i = 0; i < count; ++i) {
    step();
    const Moment now = host_now();
    samples.push_back(Time::nanoseconds(now - before));
    before = now;
  }
  return samples;
}

Run measure_mixed_run(const MixedWorker& worker, const std::string& model, int batch,
                      const StrategyOptions& strategy) {
  const auto rank = static_cast<std::size_t>(worker.all.rank());
  const std::int64_t held = worker.gpu != nullptr ? worker.gpu->device.allocated_bytes() : 0;
  worker.device.take_peak_bytes();
  MixedTraining training(worker, model, strategy.split.at(rank), strategy);
  Run run;
  run.model = model;
  run.batch_per_worker = batch;
  run.workers = worker.all.size();
  run.strategy = strategy;
  run.precision = to_string(worker.options.precision);
  run.sync = Sync::step;
  RunRepeat repeat;
  repeat.process = worker.options.repeat;
  repeat.warmup = kWarmup + kTrial;
  repeat.speed_index.before = worker.speed();
  repeat.steps = steps_for(worker, median_time(training.time_steps(kTrial)));
  repeat.samples = training.time_steps(repeat.steps);
  repeat.speed_index.after = worker.speed();
  repeat.step = quantiles(repeat.samples);
  RunRank seen;
  seen.rank = worker.all.rank();
  seen.device = worker.device.name();
  seen.step = repeat.step.p50;
  if (worker.gpu != nullptr) seen.peak = Bytes{worker.device.take_peak_bytes() - held};
  run.repeats.push_back(std::move(repeat));
  run.ranks.push_back(std::move(seen));
  return run;
}

std::vector<Time> own_steps(const MixedWorker& worker, const std::string& model,
                            const std::vector<int>& shares) {
  constexpr int kTimed = 5;
  MixedTraining training(worker, model, shares.at(static_cast<std::size_t>(worker.all.rank())),
                         {.kind = "single"});
  const Time mine = median_time(training.time_steps(kTimed));
  std::vector<Time> times;
  for (const auto& row : gather(&worker.all, {mine.ps()}, c10::kCPU)) {
    times.push_back(Time::picoseconds(row.front()));
  }
  return times;
}

}  // namespace lockstep::runner
