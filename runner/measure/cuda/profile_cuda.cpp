#include "runner/measure/cuda/profile_cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "runner/data/loader.h"
#include "runner/measure/clock.h"
#include "runner/measure/cuda/cupti_recorder.h"
#include "runner/measure/cuda/graph_marks.h"
#include "runner/measure/cuda/idle_communicator.h"
#include "runner/measure/cuda/timing.h"
#include "runner/measure/layer_costs.h"
#include "runner/measure/mark_log.h"
#include "runner/measure/statistics.h"
#include "runner/measure/train.h"
#include "runner/models/zoo.h"
#include "runner/strategies/gradient_hooks.h"
#include "runner/strategies/strategy.h"
#include "sim/core/error.h"

namespace lockstep::runner {
namespace {

/// cuDNN searches in the first, the allocator settles by the third.
constexpr int kWarmupSteps = 8;
constexpr int kMarkedSteps = 15;   ///< steps whose issue is marked
constexpr int kDdpBlocks = 5;      ///< of steps with DDP's hooks and buckets, and without
constexpr int kDdpSettle = 2;      ///< steps of a block that are not timed: buckets, the allocator
constexpr int kDdpSteps = 6;       ///< that are
constexpr int kHeldSteps = 5;      ///< steps queued behind a held stream
constexpr int kProfiledSteps = 6;  ///< under CUPTI; the first is left out
constexpr int kQueueMargin = 64;   ///< launches of a step that are no kernels: events, copies
constexpr int kSmallestQueue = 1024;

}  // namespace

struct ProfileCuda::State {
  State(const std::string& name, int size, std::uint64_t seed, const GpuWorker& at,
        Time time_budget)
      : worker(at),
        held_by_others{at.device.allocated_bytes()},
        budget(time_budget),
        batch_size(size),
        model(make_model(name, at.device.torch(), seed)),
        strategy(make_single(model)),
        trainer(model, *strategy),
        batch(random_batch(model, size, seed, at.device.torch())) {}

  void step(Recorder* recorder = nullptr) { trainer.step(batch, recorder); }

  GpuWorker worker;
  Bytes held_by_others;  ///< memory, before this model was made
  Time budget;
  int batch_size;
  Model model;
  std::unique_ptr<Strategy> strategy;
  Trainer trainer;
  Batch batch;
  std::unique_ptr<Graph> graph;         ///< timed: captured like that of a run
  std::unique_ptr<Graph> marked_graph;  ///< profiled: the same kernels, in other memory
  std::vector<int> ready_order;         ///< by parameter

  SpeedIndex speed_index;
  std::vector<Time> eager_steps, graph_steps;  ///< synchronised
  std::vector<Stretch> layout;                 ///< of the marked graph: counts of device work
  LayerTimes host;                             ///< by stretch
  Time issue;                                  ///< of an unmarked step
  Time ddp_host;                               ///< what DDP adds to it, without communication
  Time held_step;                              ///< device time of an eager step, back to back
  Time round_trip;                             ///< of the host's waiting for the device
  Time replay;                                 ///< of the graph, replays back to back
  Time marked_replay;                          ///< the same of the marked graph
  Bytes peak;

  void find_ready_order();
  void mark_host();
  void time_ddp();
  Time median_issue(Trainer& of);
  void time_held();
  void capture();
  LayerTimes profile_eager();
  LayerTimes profile_graph(const LayerTimes& eager);
  Profile describe() const;
};

ProfileCuda::ProfileCuda(const std::string& model, int batch, std::uint64_t seed,
                         const GpuWorker& worker, Time budget)
    : state_(std::make_unique<State>(model, batch, seed, worker, budget)) {
  for (int i = 0; i < kWarmupSteps; ++i) state_->step();
  state_->worker.synchronize();
  state_->find_ready_order();
}

ProfileCuda::~ProfileCuda() = default;

void ProfileCuda::State::find_ready_order() {
  ready_order.assign(model.parameters().size(), 0);
  int ready = 0;
  const GradientHooks hooks(model.parameters(), [&](int parameter) {
    ready_order[static_cast<std::size_t>(parameter)] = ready++;
  });
  step();
  worker.synchronize();
}

/// Host time between marks, the device waiting for the host at the start of each step: it has at
/// most one step queued, less than the launch queue holds.
void ProfileCuda::State::mark_host() {
  MarkLog log(host_now);
  StretchSamples samples;
  std::vector<Time> unmarked;
  for (int i = 0; i < kMarkedSteps; ++i) {
    worker.synchronize();
    const std::int64_t begin = host_now();
    step();
    unmarked.push_back(Time::nanoseconds(host_now() - begin));
    worker.synchronize();
    log.clear();
    step(&log);
    samples.add(durations(log.stretches()));
  }
  worker.synchronize();
  issue = median_time(unmarked);
  host = samples.median();
  scale_to(host, issue);
}

/// Steps of `single` and of DDP, whose hooks and buckets work as ever and which communicates
/// nothing, take turns, block by block; the median of the differences of their medians counts.
void ProfileCuda::State::time_ddp() {
  StrategyOptions ddp;
  ddp.kind = "ddp";
  IdleCommunicator idle(worker.device);
  const std::unique_ptr<Strategy> bucketed = make_strategy(ddp, model, &idle, worker.device);
  std::vector<Time> differences;
  for (int i = 0; i < kDdpBlocks; ++i) {
    const Time without = median_issue(trainer);
    Trainer with(model, *bucketed);  // hooks as long as it lives
    differences.push_back(median_issue(with) - without);
  }
  // Zero would be: not measured.
  ddp_host = std::max(Time::nanoseconds(1), median_time(differences));
}

/// Of steps that are issued to an idle device, after some that settle.
Time ProfileCuda::State::median_issue(Trainer& of) {
  std::vector<Time> issues;
  for (int i = 0; i < kDdpSettle + kDdpSteps; ++i) {
    worker.synchronize();
    const std::int64_t begin = host_now();
    of.step(batch);
    if (i >= kDdpSettle) issues.push_back(Time::nanoseconds(host_now() - begin));
  }
  worker.synchronize();
  return median_time(issues);
}

/// The quickest of several: a host that is disturbed while it queues leaves gaps, nothing else
/// does.
void ProfileCuda::State::time_held() {
  std::vector<Time> samples;
  DeviceMark begin, end;
  for (int i = 0; i < kHeldSteps; ++i) {
    worker.synchronize();
    hold(worker.device.stream(), issue * 2);
    begin.record(worker.device.stream());
    step();
    end.record(worker.device.stream());
    samples.push_back(end.since(begin));
  }
  held_step = std::ranges::min(samples);
}

void ProfileCuda::State::capture() {
  worker.synchronize();
  graph = worker.device.capture([this] { step(); });
  marked_graph = worker.device.capture([this] {
    GraphMarks nodes(worker.device.stream().stream());
    std::int64_t total = 0;
    MarkLog log([&] { return total += nodes.new_work(); });
    step(&log);
    layout = log.stretches();
  });
  for (int i = 0; i < 3; ++i) {
    graph->replay();
    marked_graph->replay();
  }
  worker.synchronize();
}

void ProfileCuda::sample_steps() {
  State& state = *state_;
  const auto eager = [&] { state.step(); };
  if (state.eager_steps.empty()) state.speed_index.before = reference_kernel_cuda();
  const Time slice = Time::picoseconds(state.budget.ps() / 2);
  const int count = steps_for(state.worker, slice, 8, 50, eager);
  const std::vector<Time> steps = time_steps(state.worker, Sync::step, count, eager);
  state.eager_steps.insert(state.eager_steps.end(), steps.begin(), steps.end());
}

void ProfileCuda::measure_undisturbed() {
  State& state = *state_;
  const GpuWorker& worker = state.worker;
  worker.device.take_peak_bytes();
  worker.barrier();
  state.mark_host();
  state.peak = Bytes{worker.device.take_peak_bytes()} - state.held_by_others;
  state.time_ddp();
  state.time_held();
  state.round_trip = measure_round_trip();
  state.capture();
  const auto replay = [&] { state.graph->replay(); };
  const int replays = steps_for(worker, state.budget, 10, 200, replay);
  state.graph_steps = time_steps(worker, Sync::step, replays, replay);
  state.replay = median_time(time_steps(worker, Sync::none, replays, replay));
  const auto marked = [&] { state.marked_graph->replay(); };
  state.marked_replay = median_time(time_steps(worker, Sync::none, replays, marked));
  state.speed_index.after = reference_kernel_cuda();
}

LayerTimes ProfileCuda::State::profile_eager() {
  CuptiRecorder recorder;
  std::vector<std::vector<Stretch>> steps;
  MarkLog log(host_now);
  recorder.start();
  for (int i = 0; i < kProfiledSteps; ++i) {
    log.clear();
    step(&log);
    worker.synchronize();
    steps.push_back(log.stretches());
  }
  const std::vector<DeviceWork> work = recorder.stop();
  StretchSamples samples;
  for (std::size_t i = 1; i < steps.size(); ++i) samples.add(work_by_issue(steps[i], work));
  return samples.median();
}

LayerTimes ProfileCuda::State::profile_graph(const LayerTimes& eager) {
  CuptiRecorder recorder;
  recorder.start();
  for (int i = 0; i < kProfiledSteps; ++i) {
    marked_graph->replay();
    worker.synchronize();
  }
  const std::vector<DeviceWork> work = recorder.stop();
  const auto expected = static_cast<std::size_t>(layout.back().end - layout.front().begin);
  const auto replays = by_replay(work, kProfiledSteps, expected);
  StretchSamples samples;
  for (std::size_t i = 1; i < replays.size(); ++i) samples.add(work_in_order(layout, replays[i]));
  if (!samples.empty()) return samples.median();
  fmt::print(stderr,
             "lockstep-measure: {} at {}: {} replays ran {} kernels, the graph holds {}; the eager "
             "kernels' times are taken instead\n",
             model.name(), batch_size, kProfiledSteps, work.size(), expected);
  return eager;
}

Profile ProfileCuda::State::describe() const {
  Profile profile;
  profile.model = model.name();
  profile.batch = batch_size;
  profile.device = worker.device.name();
  profile.input_bytes = {static_cast<std::int64_t>(batch.input.nbytes() + batch.target.nbytes())};
  profile.peak = peak;
  std::size_t parameter = 0;
  for (const ModelLayer& layer : model.layers()) {
    Layer row;
    row.name = layer.name;
    row.kind = layer.kind;
    row.output = {layer.output_bytes};
    for (const NamedTensor& named : layer.parameters) {
      row.parameters.push_back({.name = named.name,
                                .bytes = {static_cast<std::int64_t>(named.tensor.nbytes())},
                                .ready_order = ready_order[parameter++]});
    }
    for (const NamedTensor& buffer : layer.buffers) {
      if (buffer.tensor.is_floating_point()) {
        row.buffers += {static_cast<std::int64_t>(buffer.tensor.nbytes())};
      }
    }
    profile.layers.push_back(std::move(row));
  }
  return profile;
}

std::vector<ProfileSample> ProfileCuda::finish(int process, int beside) {
  State& state = *state_;
  state.worker.barrier();
  const LayerTimes eager_work = state.profile_eager();
  state.worker.barrier();
  LayerTimes graph_work = state.profile_graph(eager_work);
  // Where the same kernels find their data (caches, pages) moves a replay by some percent.
  scale_to(graph_work, Time::from_seconds(total_of(graph_work).seconds() * state.replay.seconds() /
                                          state.marked_replay.seconds()));

  const auto sample = [&](bool graph) {
    ProfileSample made;
    made.process = process;
    made.rank = state.worker.rank();
    made.speed_index = state.speed_index;
    made.profile = state.describe();
    made.profile.graph = graph;
    made.profile.beside = beside;
    made.steps = graph ? state.graph_steps : state.eager_steps;
    made.profile.step = median_time(made.steps);
    return made;
  };
  std::vector<ProfileSample> samples{sample(false), sample(true)};

  // Behind a launch queue that is full the held step is not back to back; a replay always is.
  const bool fits = launches_of(eager_work) + kQueueMargin < kSmallestQueue;
  const Time eager_gap = gap_of(fits ? state.held_step : state.replay, eager_work);
  fill_costs(samples[0].profile, eager_work, state.host, eager_gap);
  samples[0].profile.step_overhead.host += state.round_trip;
  samples[0].ddp_host = state.ddp_host;
  fill_costs(samples[1].profile, graph_work, {}, gap_of(state.replay, graph_work));
  // What a synchronised step takes beyond its device time: launching the graph, waking the host.
  samples[1].profile.step_overhead.host = std::max(Time(), samples[1].profile.step - state.replay);
  return samples;
}

}  // namespace lockstep::runner
