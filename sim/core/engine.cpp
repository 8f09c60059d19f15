#include "sim/core/engine.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "sim/core/error.h"
#include "sim/core/simulation.h"
#include "sim/platform/network.h"

namespace lockstep {
namespace {

/// Of a factor that may be large. Throws InputError where the clock does not reach so far.
std::int64_t stretched(std::int64_t work, Factor factor) {
  constexpr double kHorizon = 0x1p62;
  if (static_cast<double>(work) * factor.value() >= kHorizon) refuse_beyond_horizon();
  return scale(Time::picoseconds(work), factor).ps();
}

constexpr std::uint32_t target_of(std::uint32_t worker, std::uint32_t lane) {
  return worker << 3 | lane;
}

[[noreturn]] void reject(const std::string& what, std::string_view hint) {
  throw InputError({}, "engine", what, hint);
}

void validate(const TaskGraph& graph, const EngineOptions& options) {
  const std::size_t workers = graph.program_of_worker.size();
  if (options.iterations == 0) reject("no iterations", "at least one");
  if (!options.slowdowns.empty() && options.slowdowns.size() != workers) {
    reject(fmt::format("{} slow-downs for {} workers", options.slowdowns.size(), workers),
           "one for every worker, or none");
  }
  for (const Slowdown& slowdown : options.slowdowns) {
    if (slowdown.drawn > options.drawn.size()) reject("a slow-down as drawn that is not there", "");
  }
  const NoiseLevels& noise = options.noise;
  for (const double level : {noise.process, noise.step, noise.task}) {
    if (!(level >= 0 && level < 100)) reject("a noise level out of range", "0 <= level < 100");
  }
  for (const Collective& collective : graph.collectives) {
    if (!collective.expanded) continue;
    if (options.network == nullptr || options.network->workers() != workers) {
      reject("a collective step by step without a network that joins all workers",
             "give the run a network with as many workers as the graph");
    }
  }
}

}  // namespace

EngineResult run(const TaskGraph& graph, const EngineOptions& options) {
  validate(graph);
  validate(graph, options);
  return Simulation(graph, options).run();
}

Simulation::Simulation(const TaskGraph& graph, const EngineOptions& options)
    : graph_(graph),
      options_(options),
      factors_(options),
      transfers_slow_(graph.collective_beside_compute != Factor{} ||
                      std::ranges::any_of(graph.collectives, [](const Collective& collective) {
                        return collective.beside_compute != Factor{};
                      })) {
  for (const Program& program : graph.programs) programs_.push_back(compile(graph, program));
  workers_.resize(graph.program_of_worker.size());
  transfers_.resize(kIterationWindow * graph.collectives.size());
  closed_.resize(graph.collectives.size());
  passed_.resize(workers_.size() * graph.delays.size());
  result_.step_end.assign(workers_.size(), std::vector<Time>(options.iterations));
  result_.collectives.resize(std::size_t{options.iterations} * graph.collectives.size() *
                             workers_.size());
  for (std::uint32_t w = 0; w < workers_.size(); ++w) {
    Worker& worker = workers_[w];
    worker.index = w;
    worker.program = &programs_[graph.program_of_worker[w]];
    const std::vector<CompiledTask>& tasks = worker.program->tasks;
    for (std::uint32_t l = 0; l < kLanes; ++l) {
      worker.lanes[l].next = worker.program->lane_begin[l];
      // An empty lane has nothing to do in any iteration.
      const bool empty = worker.program->lane_begin[l] == worker.program->lane_begin[l + 1];
      if (empty) worker.lanes[l].iteration = options.iterations;
    }
    for (std::uint32_t slot = 0; slot < kIterationWindow; ++slot) {
      for (const CompiledTask& task : tasks) worker.waits.push_back(task.dependencies);
      open_iteration(worker, slot);
    }
    worker.recorded = options.record_spans && options.spans_of.value_or(w) == w;
    worker.first_span = spans_per_iteration_;
    if (worker.recorded) spans_per_iteration_ += tasks.size();
  }
  result_.tasks.resize(spans_per_iteration_ * options.iterations);
  if (options.record_spans) result_.spans_of = options.spans_of;
  for (const Collective& collective : graph.collectives) {
    if (!collective.expanded || exchange_) continue;
    exchange_.emplace(graph, *options.network, queue_,
                      options.record_messages ? &result_.messages : nullptr);
  }
}

EngineResult Simulation::run() {
  for (Worker& worker : workers_) pump(worker, kAllLanes);
  for (;;) {
    if (unsettled() && (queue_.empty() || queue_.top().time > now_)) {
      settle();
      continue;
    }
    if (queue_.empty()) break;
    handle(queue_.pop());
  }
  check_finished();
  return std::move(result_);
}

void Simulation::handle(const Event& event) {
  switch (event.kind()) {
    case EventKind::task_end: {
      Worker& worker = workers_[event.target >> 3];
      const std::uint32_t lane = event.target & 7;
      if (worker.lanes[lane].generation != event.generation) return;
      now_ = event.time;
      pump(worker, complete(worker, lane) | 1u << lane);
      return;
    }
    case EventKind::transfer_end:
      if (transfers_[event.target].generation != event.generation) return;
      now_ = event.time;
      end_transfer(event.target);
      return;
    case EventKind::message_join:
    case EventKind::message_end:
    case EventKind::reduction_end:
      now_ = event.time;
      exchange_->handle(event);
      drain_exchange();
      return;
  }
}

void Simulation::open_iteration(Worker& worker, std::uint32_t iteration) {
  const std::uint32_t slot = slot_of(iteration);
  worker.tasks_left[slot] = static_cast<std::uint32_t>(worker.program->tasks.size());
  worker.left_out[slot] = worker.dropped[slot] = false;
  if (factors_.vary()) worker.factors[slot] = factors_.worker(worker.index, iteration);
}

/// Lets the lanes run as far as they get in this instant.
void Simulation::pump(Worker& worker, LaneMask lanes) {
  while (lanes != 0) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(lanes));
    lanes &= lanes - 1;
    lanes |= advance(worker, lane);
  }
}

/// Starts heads of one lane until one takes time or must wait. Returns lanes that this woke.
Simulation::LaneMask Simulation::advance(Worker& worker, std::uint32_t lane) {
  LaneState& state = worker.lanes[lane];
  LaneMask woken = 0;
  while (!state.busy && state.iteration < options_.iterations &&
         state.iteration < worker.first_open + kIterationWindow) {
    const CompiledTask& task = worker.program->tasks[state.next];
    std::uint32_t& waits =
        worker.waits[slot_of(state.iteration) * worker.program->tasks.size() + state.next];
    if (waits != 0) break;
    // More kernels than the queue is deep go when it is empty.
    const bool full = task.launches != 0 && worker.queued != 0 &&
                      worker.queued + task.launches > graph_.launch_queue;
    if (full) break;
    waits = task.dependencies;  // for the iteration that takes this slot next
    worker.queued += task.launches;
    state.start = now_;
    if (task.collective != kNoCollective) {
      state.busy = true;
      if (launch(worker, task, state.iteration)) break;
      woken |= complete(worker, lane);
      continue;
    }
    const std::int64_t work = effective_work(worker, lane, task);
    if (work > 0) {
      start_work(worker, lane, task, work);
      break;
    }
    woken |= complete(worker, lane);
  }
  return woken;
}

std::int64_t Simulation::effective_work(Worker& worker, std::uint32_t lane,
                                        const CompiledTask& task) {
  if (graph_.backups > 0 && leaves_out(worker, lane)) return 0;
  if (task.work <= 0) return task.work == 0 ? 0 : drawn_delay(worker, lane, task);
  if (!factors_.vary()) return task.work;
  const LaneState& state = worker.lanes[lane];
  const Slowdown& slowdown = worker.factors[slot_of(state.iteration)];
  Factor factor = lane == kHost || lane == kLoader ? slowdown.host : slowdown.device;
  if (factors_.vary_by_task()) {
    factor = factor * factors_.task(worker.index, state.iteration, state.next);
  }
  return stretched(task.work, factor);
}

std::int64_t Simulation::drawn_delay(const Worker& worker, std::uint32_t lane,
                                     const CompiledTask& task) {
  const auto index = static_cast<std::size_t>(-1 - task.work);
  const DrawnDelay& delay = graph_.delays[index];
  const DrawKey key{options_.seed, worker.index, worker.lanes[lane].iteration,
                    kDrawStream - delay.stream};
  if (!by_clock(delay.variability)) return stretched(delay.time.ps(), draw(delay.variability, key));
  std::int64_t& passed = passed_[worker.index * graph_.delays.size() + index];
  const std::int64_t due =
      pauses_due(delay.variability, key, Time::picoseconds(passed), Time::picoseconds(now_));
  passed = now_;
  std::int64_t length = 0;
  if (__builtin_mul_overflow(delay.time.ps(), due, &length)) refuse_beyond_horizon();
  return length;
}

/// Whether the worker comes too late for the whole iteration that the lane is in: the others had
/// begun to exchange it when this one began it.
bool Simulation::leaves_out(Worker& worker, std::uint32_t lane) {
  const LaneState& state = worker.lanes[lane];
  bool& left_out = worker.left_out[slot_of(state.iteration)];
  const bool begins = state.next == worker.program->lane_begin[lane];
  if (begins && (lane == kHost || lane == kCompute)) {
    left_out = left_out || closed_.front() > state.iteration;
  }
  return left_out;
}

void Simulation::start_work(Worker& worker, std::uint32_t lane, const CompiledTask& task,
                            std::int64_t work) {
  LaneState& state = worker.lanes[lane];
  state.busy = true;
  state.work = work;
  std::int64_t duration = work;
  if (lane == kCompute) {
    if (task.interference != 0) {
      worker.slowdown = compute_slowdown(worker, task);
      duration = scale(Time::picoseconds(work), worker.slowdown).ps();
    }
    if (transfers_slow_) count_computing(+1);
  }
  state.end = later(duration);
  queue_.push(state.end, EventKind::task_end, target_of(worker.index, lane), state.generation);
}

/// The head of the lane has ended now: releases what waited for it and moves on to the next task.
/// Returns the lanes that may go on; the lane itself is not among them.
Simulation::LaneMask Simulation::complete(Worker& worker, std::uint32_t lane) {
  LaneState& state = worker.lanes[lane];
  const CompiledProgram& program = *worker.program;
  const CompiledTask& task = program.tasks[state.next];
  const std::uint32_t slot = slot_of(state.iteration);
  if (lane == kCompute && state.busy && transfers_slow_) count_computing(-1);
  state.busy = false;
  ++result_.completed_tasks;
  if (worker.recorded) {
    result_.tasks[state.iteration * spans_per_iteration_ + worker.first_span + state.next] = {
        worker.index, state.iteration, state.next, Time::picoseconds(state.start),
        Time::picoseconds(now_)};
  }

  LaneMask woken = 0;
  std::uint32_t* waits = &worker.waits[slot * program.tasks.size()];
  for (std::uint32_t s = task.first_successor; s < task.last_successor; ++s) {
    const std::uint32_t successor = program.successors[s];
    const std::uint32_t to = successor >> kLaneShift;
    const bool released = --waits[successor & kTaskMask] == 0;
    if (released && worker.lanes[to].next == (successor & kTaskMask)) woken |= 1u << to;
  }
  if (task.frees != 0) {
    worker.queued -= task.frees;
    woken |= 1u << kHost;
  }
  if (++state.next == program.lane_begin[lane + 1]) {
    state.next = program.lane_begin[lane];
    ++state.iteration;
  }
  if (--worker.tasks_left[slot] == 0) {
    result_.step_end[worker.index][worker.first_open] = Time::picoseconds(now_);
    ++worker.first_open;
    open_iteration(worker, worker.first_open + kIterationWindow - 1);
    woken = kAllLanes;
  }
  return woken & ~(1u << lane);
}

std::int64_t Simulation::later(std::int64_t duration) const {
  std::int64_t end = 0;
  if (__builtin_add_overflow(now_, duration, &end)) refuse_beyond_horizon();
  return end;
}

std::string Simulation::stuck_head(const Worker& worker, std::uint32_t lane) const {
  const LaneState& state = worker.lanes[lane];
  const CompiledTask& task = worker.program->tasks[state.next];
  const std::uint32_t waits =
      worker.waits[slot_of(state.iteration) * worker.program->tasks.size() + state.next];
  std::string why;
  if (state.busy) {
    why = "waits for its peers";
  } else if (state.iteration >= worker.first_open + kIterationWindow) {
    why = "waits for an earlier iteration";
  } else if (waits > 0) {
    why = fmt::format("waits for {} tasks", waits);
  } else if (task.launches != 0) {
    why = "waits for room on the launch queue";
  }
  const Program& program = graph_.programs[graph_.program_of_worker[worker.index]];
  return fmt::format("worker {} iteration {}: {} {}", worker.index, state.iteration,
                     describe_task(graph_, program, state.next), why);
}

void Simulation::check_finished() const {
  constexpr int kNamed = 4;
  int stuck = 0;
  std::string heads;
  for (const Worker& worker : workers_) {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      if (worker.lanes[lane].iteration >= options_.iterations) continue;
      if (++stuck <= kNamed) heads += (stuck > 1 ? ", " : "") + stuck_head(worker, lane);
    }
  }
  if (stuck == 0) return;
  if (stuck > kNamed) heads += fmt::format(", and {} more lanes", stuck - kNamed);
  reject(fmt::format("deadlock at {}: {}", to_string(Time::picoseconds(now_)), heads),
         "every worker must issue the same collectives in the same order");
}

}  // namespace lockstep
