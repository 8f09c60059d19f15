#include "runner/measure/cuda/profile_cuda.h"

#include <ATen/ops/empty.h>
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
#include "runner/measure/out_of_memory.h"
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
constexpr int kFewestSampled = 8, kMostSampled = 50;    ///< eager steps between runs
constexpr int kFewestReplays = 10, kMostReplays = 200;  ///< of a graph
constexpr int kSmallestQueue = 1024;
constexpr int kFewestSteps = 3;            ///< of each kind, where one takes seconds
constexpr Bytes kSpare{256 * kMiB.count};  ///< of memory, for what a run takes in passing

}  // namespace

struct ProfileCuda::State {
  State(const std::string& name, int size, Precision arithmetic, std::uint64_t seed,
        const GpuWorker& at, Time time_budget)
      : worker(at),
        held_by_others{at.device.allocated_bytes()},
        budget(time_budget),
        batch_size(size),
        precision(arithmetic),
        model(make_model(name, at.device.torch(), seed)),
        strategy(make_single(model)),
        trainer(model, *strategy, {}, nullptr, arithmetic),
        batch(random_batch(model, size, seed, at.device.torch())) {}

  void step(Recorder* recorder = nullptr) { trainer.step(batch, recorder); }

  GpuWorker worker;
  Bytes held_by_others;  ///< memory, before this model was made
  Time budget;
  int batch_size;
  Precision precision;
  Model model;
  std::unique_ptr<Strategy> strategy;
  Trainer trainer;
  Batch batch;
  std::vector<int> ready_order;  ///< by parameter

  SpeedIndex speed_index;
  std::vector<Time> eager_steps, graph_steps;  ///< synchronised; the latter where a graph fits
  LayerTimes host;                             ///< by stretch
  Time issue;                                  ///< of an unmarked step
  Time ddp_host;                               ///< what DDP adds to it, without communication
  Time held_step;                              ///< device time of an eager step, back to back
  Time step_time;                              ///< about, of a step
  Time round_trip;                             ///< of the host's waiting for the device
  Time replay;                                 ///< of the graph, replays back to back
  Bytes peak;

  Bytes bytes_of_run() const;
  void find_ready_order();
  void mark_host();
  void time_ddp();
  Time median_issue(Trainer& of);
  void time_held();
  void time_graph();
  std::vector<Time> time_replays(Sync sync, Graph& graph) const;
  std::unique_ptr<Graph> capture_marked(std::vector<Stretch>& layout);
  LayerTimes profile_eager();
  LayerTimes profile_graph(const LayerTimes& eager);
  Profile describe() const;
};

ProfileCuda::ProfileCuda(const std::string& model, int batch, Precision precision,
                         std::uint64_t seed, const GpuWorker& worker, Time budget)
    : state_(std::make_unique<State>(model, batch, precision, seed, worker, budget)) {
  const GpuWorker alone{.device = worker.device, .communicator = nullptr, .beat = worker.beat};
  state_->step_time =
      warm_up(alone, kWarmupSteps, [this](Recorder* recorder) { state_->step(recorder); });
  state_->find_ready_order();
  worker.beat();
}

ProfileCuda::~ProfileCuda() = default;

int ProfileCuda::steps_of(Time step, Time block, int runs) {
  const auto timed = [step](Time span, int fewest, int most) {
    return kTrialSteps + steps_within(step, span, fewest, most);
  };
  const Time slice = Time::picoseconds(block.ps() / 2);
  const int marked = 2 * within_patience(step * 2, kMarkedSteps, kFewestSteps);
  const int ddp_block =
      2 * (within_patience(step * 4, kDdpSettle, 1) + within_patience(step * 4, kDdpSteps, 1));
  const int ddp = ddp_block * within_patience(step * 4, kDdpBlocks, 1);
  const int replays = 3 * timed(block, kFewestReplays, kMostReplays);
  return within_patience(step, kWarmupSteps, kFewestSteps) + 2 +
         (runs + 1) * timed(slice, kFewestSampled, kMostSampled) + marked + ddp +
         within_patience(step, kHeldSteps, kFewestSteps) + replays + 2 * kProfiledSteps;
}

/// Parameters, momenta and buckets; the gradients of a step are there already. What rank 0 gathers
/// of the largest one and adds up.
Bytes ProfileCuda::State::bytes_of_run() const {
  std::size_t all = 0, largest = 0;
  for (const at::Tensor& parameter : model.parameters()) {
    all += parameter.nbytes();
    largest = std::max(largest, parameter.nbytes());
  }
  const auto workers = static_cast<std::size_t>(worker.size());
  const std::size_t gathered = workers > 1 ? (workers + 1) * largest : 0;
  return kSpare + Bytes{static_cast<std::int64_t>(3 * all + gathered + batch.input.nbytes())};
}

void ProfileCuda::rehearse_run() {
  const CudaDevice& device = state_->worker.device;
  const at::Tensor taken =
      at::empty({state_->bytes_of_run().count}, at::TensorOptions(device.torch()).dtype(at::kByte));
  state_->step();
  state_->worker.device.synchronize();
  state_->worker.beat();
}

void ProfileCuda::State::find_ready_order() {
  ready_order.assign(model.parameters().size(), 0);
  int ready = 0;
  const GradientHooks hooks(model.parameters(), [&](int parameter) {
    ready_order[static_cast<std::size_t>(parameter)] = ready++;
  });
  step();
  worker.device.synchronize();
}

/// Host time between marks, the device waiting for the host at the start of each step: it has at
/// most one step queued, less than the launch queue holds.
void ProfileCuda::State::mark_host() {
  MarkLog log(host_now);
  StretchSamples samples;
  std::vector<Time> unmarked;
  const int steps = within_patience(step_time * 2, kMarkedSteps, kFewestSteps);
  for (int i = 0; i < steps; ++i) {
    worker.synchronize();
    worker.beat();
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
  const int blocks = within_patience(step_time * 4, kDdpBlocks, 1);
  for (int i = 0; i < blocks; ++i) {
    const Time without = median_issue(trainer);
    Trainer with(model, *bucketed, {}, nullptr, precision);  // hooks as long as it lives
    differences.push_back(median_issue(with) - without);
  }
  // Zero would be: not measured.
  ddp_host = std::max(Time::nanoseconds(1), median_time(differences));
}

/// Of steps that are issued to an idle device, after some that settle.
Time ProfileCuda::State::median_issue(Trainer& of) {
  std::vector<Time> issues;
  const int settle = within_patience(step_time * 4, kDdpSettle, 1);
  const int steps = settle + within_patience(step_time * 4, kDdpSteps, 1);
  for (int i = 0; i < steps; ++i) {
    worker.synchronize();
    worker.beat();
    const std::int64_t begin = host_now();
    of.step(batch);
    if (i >= settle) issues.push_back(Time::nanoseconds(host_now() - begin));
  }
  worker.synchronize();
  return median_time(issues);
}

/// The quickest of several: a host that is disturbed while it queues leaves gaps, nothing else
/// does.
void ProfileCuda::State::time_held() {
  std::vector<Time> samples;
  DeviceMark begin, end;
  const int steps = within_patience(step_time, kHeldSteps, kFewestSteps);
  for (int i = 0; i < steps; ++i) {
    worker.synchronize();
    worker.beat();
    hold(worker.device.stream(), issue * 2);
    begin.record(worker.device.stream());
    step();
    end.record(worker.device.stream());
    samples.push_back(end.since(begin));
  }
  held_step = std::ranges::min(samples);
}

/// The same kernels as those of an unmarked graph. `layout`: how many pieces of device work each
/// stretch captured.
std::unique_ptr<Graph> ProfileCuda::State::capture_marked(std::vector<Stretch>& layout) {
  return worker.device.capture([&] {
    GraphMarks nodes(worker.device.stream().stream());
    std::int64_t total = 0;
    MarkLog log([&] { return total += nodes.new_work(); });
    step(&log);
    layout = log.stretches();
  });
}

void ProfileCuda::sample_steps() {
  State& state = *state_;
  const auto eager = [&] { state.step(); };
  if (state.eager_steps.empty()) state.speed_index.before = reference_kernel_cuda();
  const Time slice = Time::picoseconds(state.budget.ps() / 2);
  const int count = steps_for(state.worker, slice, kFewestSampled, kMostSampled, eager);
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
  state.time_graph();
  state.speed_index.after = reference_kernel_cuda();
}

std::vector<Time> ProfileCuda::State::time_replays(Sync sync, Graph& graph) const {
  const auto one = [&graph] { graph.replay(); };
  return time_steps(worker, sync, steps_for(worker, budget, kFewestReplays, kMostReplays, one),
                    one);
}

/// A graph takes as much memory as a step beside it: only one is there at a time, and no longer
/// than it is needed.
void ProfileCuda::State::time_graph() {
  std::unique_ptr<Graph> graph;
  const bool fits = fits_in_memory([&] { graph = worker.device.capture([this] { step(); }); });
  if (!worker.first_without_room(fits)) {
    graph_steps = time_replays(Sync::step, *graph);
    replay = median_time(time_replays(Sync::none, *graph));
  }
  graph.reset();
  worker.device.release_memory();
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
    worker.beat();
    steps.push_back(log.stretches());
  }
  const std::vector<DeviceWork> work = recorder.stop();
  StretchSamples samples;
  for (std::size_t i = 1; i < steps.size(); ++i) samples.add(work_by_issue(steps[i], work));
  return samples.median();
}

/// Times of the kernels of a marked graph, as long together as those of the timed one: where the
/// same kernels find their data (caches, pages) moves a replay by some percent.
LayerTimes ProfileCuda::State::profile_graph(const LayerTimes& eager) {
  std::vector<Stretch> layout;
  const std::unique_ptr<Graph> graph = capture_marked(layout);
  const Time marked_replay = median_time(time_replays(Sync::none, *graph));
  CuptiRecorder recorder;
  recorder.start();
  for (int i = 0; i < kProfiledSteps; ++i) {
    graph->replay();
    worker.synchronize();
    worker.beat();
  }
  const std::vector<DeviceWork> work = recorder.stop();
  const auto expected = static_cast<std::size_t>(layout.back().end - layout.front().begin);
  const auto replays = by_replay(work, kProfiledSteps, expected);
  StretchSamples samples;
  for (std::size_t i = 1; i < replays.size(); ++i) samples.add(work_in_order(layout, replays[i]));
  if (samples.empty()) {
    fmt::print(stderr,
               "lockstep-measure: {} at {}: {} replays ran {} kernels, the graph holds {}; the "
               "eager kernels' times are taken instead\n",
               model.name(), batch_size, kProfiledSteps, work.size(), expected);
  }
  LayerTimes times = samples.empty() ? eager : samples.median();
  scale_to(times, Time::from_seconds(total_of(times).seconds() * replay.seconds() /
                                     marked_replay.seconds()));
  return times;
}

Profile ProfileCuda::State::describe() const {
  Profile profile;
  profile.model = model.name();
  profile.batch = batch_size;
  profile.precision = to_string(precision);
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
      if (layer.frozen) break;
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
  const bool has_graph = !state.graph_steps.empty();
  // Behind a launch queue that is full the held step is not back to back; a replay always is.
  const bool fits = launches_of(eager_work) + kQueueMargin < kSmallestQueue || !has_graph;
  const Time eager_gap = gap_of(fits ? state.held_step : state.replay, eager_work);
  std::vector<ProfileSample> samples{sample(false)};
  fill_costs(samples[0].profile, eager_work, state.host, eager_gap);
  samples[0].profile.step_overhead.host += state.round_trip;
  samples[0].ddp_host = state.ddp_host;
  if (!has_graph) return samples;

  const LayerTimes graph_work = state.profile_graph(eager_work);
  samples.push_back(sample(true));
  Profile& graph = samples[1].profile;
  fill_costs(graph, graph_work, {}, gap_of(state.replay, graph_work));
  // What a synchronised step takes beyond its device time: launching the graph, waking the host.
  graph.step_overhead.host = std::max(Time(), graph.step - state.replay);
  return samples;
}

}  // namespace lockstep::runner
