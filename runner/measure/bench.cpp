#include "runner/measure/bench.h"

#include <fmt/format.h>

#include <limits>

#include "runner/measure/clock.h"
#include "runner/models/zoo.h"
#include "runner/strategies/gradient_hooks.h"

namespace lockstep::runner {

namespace {

/// From each `from` to the next `to`, in all.
Moment between(const std::vector<MarkedMoment>& marks, Mark from, Mark to) {
  Moment sum = 0;
  Moment begin = 0;
  bool open = false;
  for (const MarkedMoment& marked : marks) {
    if (marked.mark == from) begin = marked.at;
    if (open && marked.mark == to) sum += marked.at - begin;
    open = marked.mark == from || (open && marked.mark != to);
  }
  return sum;
}

std::vector<BucketTimes> since(Moment begin, const std::vector<BucketMoments>& moments) {
  std::vector<BucketTimes> times;
  for (const BucketMoments& bucket : moments) {
    times.push_back({.bytes = bucket.bytes,
                     .ready = Time::nanoseconds(bucket.ready - begin),
                     .launch = Time::nanoseconds(bucket.launch - begin),
                     .done = Time::nanoseconds(bucket.done - begin)});
  }
  return times;
}

/// A slow worker computes all the time: one that sleeps would give its core away, or let it doze,
/// and come back slower than it is meant to be. Where workers share cores it must sleep, and where
/// nobody computes there is nothing to keep awake.
Moment how_it_waits(const BenchOptions& options) {
  return options.own_core && !options.replay ? std::numeric_limits<Moment>::max() : options.spin;
}

}  // namespace

Bench::Bench(const BenchOptions& options, Communicator* communicator, Device& device)
    : options_(options),
      device_(device),
      model_(options.replay ? replayed_model(*options.replay)
                            : make_model(options.model, device.torch(), options.seed)),
      strategy_(make_strategy(options.strategy, model_, communicator, device, options.servers)),
      slowness_(options.stragglers, communicator != nullptr ? communicator->rank() : 0,
                how_it_waits(options), options.draws) {
  Slowness* slowness = slowness_.any() ? &slowness_ : nullptr;
  if (options.replay) {
    replay_.emplace(*options_.replay, model_, *strategy_, slowness, options.spin);
  } else {
    loader_.emplace(options.data, model_, options.batch * strategy_->passes(), device.torch());
    trainer_.emplace(model_, *strategy_, SgdOptions{}, slowness, options.precision);
  }
}

Batch Bench::load() {
  slowness_.delay(StepPart::input);
  if (loader_) return loader_->next();
  replay_->load();
  return {};
}

void Bench::step(const Batch& batch, Recorder* recorder) {
  if (trainer_) {
    trainer_->step(batch, recorder);
  } else {
    replay_->step(recorder);
  }
}

TimedStep Bench::timed_step() {
  HostRecorder recorder(/*by_layer=*/false);
  device_.clear_stamps();
  slowness_.next_step();
  const Moment begin = host_now();
  slowness_.delay(StepPart::step);
  const Moment loading = host_now();
  const Batch batch = load();
  const Moment loaded = host_now();
  step(batch, &recorder);
  device_.synchronize();
  const Moment end = host_now();
  const auto& marks = recorder.marks();
  TimedStep timed;
  timed.total = end - begin;
  timed.input = loaded - loading;
  timed.forward = between(marks, Mark::forward_begin, Mark::backward_begin);
  timed.backward = between(marks, Mark::backward_begin, Mark::backward_end);
  timed.optimizer = between(marks, Mark::optimizer_begin, Mark::optimizer_end);
  timed.buckets = since(begin, strategy_->take_buckets());
  return timed;
}

StepParts Bench::profiled_step() {
  slowness_.next_step();
  const Batch batch = load();
  HostRecorder recorder;
  step(batch, &recorder);
  return cut_at_marks(recorder.marks(), model_.layers().size());
}

Timeline Bench::traced_step(int rank, Moment origin) {
  slowness_.next_step();
  const Batch batch = load();
  HostRecorder recorder;
  device_.clear_stamps();
  step(batch, &recorder);
  Timeline timeline;
  const auto add = [&](Lane lane, TaskKind kind, const std::string& name, Moment from, Moment to) {
    if (to <= from) return;
    timeline.push_back({.worker = static_cast<std::uint32_t>(rank),
                        .lane = lane,
                        .kind = kind,
                        .iteration = 0,
                        .name = name,
                        .start = Time::nanoseconds(from - origin),
                        .end = Time::nanoseconds(to - origin)});
  };
  const auto name_of = [this](int layer) {
    return model_.layers()[static_cast<std::size_t>(layer)].name;
  };
  const auto& marks = recorder.marks();
  for (std::size_t i = 0; i + 1 < marks.size(); ++i) {
    const MarkedMoment& from = marks[i];
    const MarkedMoment& to = marks[i + 1];
    if (to.mark == Mark::forward_end) {
      add(Lane::compute, TaskKind::forward, name_of(to.layer), from.at, to.at);
    } else if (from.mark == Mark::backward_begin && from.layer >= 0) {
      add(Lane::compute, TaskKind::backward, name_of(from.layer), from.at, to.at);
    } else if (from.mark == Mark::optimizer_begin) {
      add(Lane::compute, TaskKind::optimizer, "optimizer", from.at, to.at);
    }
  }
  const auto buckets = strategy_->take_buckets();
  const std::string kind = strategy_->kind();
  const char* what = kind == "ddp" ? "bucket" : kind == "horovod" ? "group" : "gradient";
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    add(Lane::communication, TaskKind::collective, fmt::format("{} {}", what, i), buckets[i].launch,
        buckets[i].done);
  }
  return timeline;
}

Bytes Bench::input_bytes() const {
  return {options_.batch * model_.input_bytes()};
}

std::vector<int> Bench::ready_order() {
  std::vector<int> order;
  const GradientHooks hooks(model_.parameters(),
                            [&order](int parameter) { order.push_back(parameter); });
  step(load(), nullptr);
  device_.synchronize();
  return order;
}

}  // namespace lockstep::runner
