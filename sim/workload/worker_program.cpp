#include "sim/workload/worker_program.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/core/error.h"

namespace lockstep {
namespace {

/// How a collective goes on beside backward, whose layers hold the cores each in their own way:
/// they count by the time that they take.
struct BesideBackward {
  double slowdown = 1;
  double wait = 0;  ///< s
};

BesideBackward beside_backward(const Workload& workload) {
  const InterferenceFit& fit = workload.interference;
  const BesideBackward any{.slowdown = fit.collective_beside_compute,
                           .wait = fit.wait_beside_compute.seconds()};
  std::map<std::string_view, BesideBackward> kinds;
  for (const InterferenceFit::ByLayerKind& kind : fit.by_layer_kind) {
    if (kind.collective_beside == 1 && kind.wait_beside == Time{}) continue;  // not measured
    kinds[kind.layer_kind] = {.slowdown = kind.collective_beside,
                              .wait = kind.wait_beside.seconds()};
  }
  double time = 0;
  BesideBackward sum{.slowdown = 0};
  for (const Layer& layer : workload.profiles.front().layers) {
    const double seconds = layer.backward.device.seconds();
    const auto known = kinds.find(layer.kind);
    const BesideBackward& kind = known == kinds.end() ? any : known->second;
    time += seconds;
    sum.slowdown += seconds * kind.slowdown;
    sum.wait += seconds * kind.wait;
  }
  if (time <= 0) return any;
  return {.slowdown = sum.slowdown / time, .wait = sum.wait / time};
}

}  // namespace

GraphParts::GraphParts(const Workload& workload) {
  const InterferenceFit& fit = workload.interference;
  const auto factors = [](double waiting, double transferring) {
    return Interference{.waiting = Factor::of(waiting), .transferring = Factor::of(transferring)};
  };
  // Entry 1 stands for every kind of layer that was not measured on its own.
  graph_.interference.push_back(factors(fit.waiting, fit.transferring));
  for (const InterferenceFit::ByLayerKind& kind : fit.by_layer_kind) {
    interference_[kind.layer_kind] = static_cast<std::uint16_t>(graph_.interference.size());
    graph_.interference.push_back(factors(kind.waiting, kind.transferring));
  }
  const BesideBackward beside = beside_backward(workload);
  graph_.collective_beside_compute = Factor::of(beside.slowdown);
  wait_beside_compute_ = Time::nanoseconds(std::llround(beside.wait * 1e9));
  if (!workload.cpu && !workload.graph) {
    graph_.launch_queue = static_cast<std::uint32_t>(std::max(0, workload.launch_queue));
  }
}

std::uint32_t GraphParts::name(const std::string& text) {
  const auto [entry, added] = names_.emplace(text, static_cast<std::uint32_t>(names_.size()));
  if (added) graph_.names.push_back(text);
  return entry->second;
}

std::uint16_t GraphParts::interference_of(const std::string& layer_kind) const {
  const auto found = interference_.find(layer_kind);
  return found == interference_.end() ? std::uint16_t{1} : found->second;
}

std::int32_t GraphParts::collective(std::size_t i, const Collective& collective) {
  LOCKSTEP_ASSERT(i <= graph_.collectives.size(), "programs number their collectives in order");
  if (i == graph_.collectives.size()) {
    graph_.collectives.push_back(collective);
    if (!collective.expanded && collective.duration > Time{} && wait_beside_compute_ > Time{}) {
      const double working =
          graph_.collective_beside_compute.value() * collective.duration.seconds();
      const double all = working + wait_beside_compute_.seconds();
      graph_.collectives.back().beside_compute = Factor::of(all / working);
      graph_.collectives.back().working = Factor::of(working / all);
    }
  }
  const Collective& shared = graph_.collectives[i];
  LOCKSTEP_ASSERT(shared.kind == collective.kind && shared.bytes == collective.bytes,
                  "all workers call the same collectives in the same order");
  return static_cast<std::int32_t>(i);
}

std::uint16_t GraphParts::delay(const StepDelay& delay) {
  std::vector<DrawnDelay>& delays = graph_.delays;
  const auto known = std::ranges::find(delays, delay.stream, &DrawnDelay::stream);
  const auto index = static_cast<std::size_t>(known - delays.begin());
  if (known == delays.end()) {
    delays.push_back(
        {.time = delay.time, .variability = delay.variability, .stream = delay.stream});
  }
  return static_cast<std::uint16_t>(index + 1);
}

TaskGraph GraphParts::finish(const Workload& workload, std::vector<Program> programs) {
  graph_.backups = static_cast<std::uint32_t>(workload.backup_workers);
  graph_.programs = std::move(programs);
  graph_.program_of_worker = workload.profile_of_worker;
  return std::move(graph_);
}

WorkerProgram::WorkerProgram(const Workload& workload, std::uint32_t profile, GraphParts& parts)
    : workload_(workload),
      profile_(workload.profiles.at(profile)),
      root_(workload.root_profile == profile),
      unlike_(workload.unlike.empty() ? nullptr : &workload.unlike.at(profile)),
      cpu_(unlike_ != nullptr ? unlike_->cpu : workload.cpu),
      delays_(workload.delays.empty() ? std::vector<StepDelay>{} : workload.delays.at(profile)),
      parts_(parts) {}

std::optional<WorkerProgram::Id> WorkerProgram::issue(const std::string& name, Time host,
                                                      int launches) {
  if (cpu_ || workload_.graph) return std::nullopt;
  Task task;
  task.kind = TaskKind::issue;
  task.lane = Lane::host;
  task.work = host + pending_host_;
  task.launches = static_cast<std::uint16_t>(
      std::clamp<int>(launches, 0, std::numeric_limits<std::uint16_t>::max()));
  task.name = parts_.name(name);
  pending_host_ = {};
  row_.reset();
  last_issue_ = builder_.add(task);
  return last_issue_;
}

WorkerProgram::Id WorkerProgram::on_device(TaskKind kind, Lane lane, const std::string& name,
                                           Time device, const std::string& layer_kind) {
  Task task;
  task.kind = kind;
  task.lane = lane;
  task.work = device;
  task.name = parts_.name(name);
  if (lane == Lane::compute) {
    task.work += pending_device_;
    task.interference = parts_.interference_of(layer_kind);
    pending_device_ = {};
  }
  const Id id = builder_.add(task);
  for (Id before : before_next_) builder_.edge(before, id);
  before_next_.clear();
  if (lane == Lane::compute) last_work_ = id;
  return id;
}

WorkerProgram::Id WorkerProgram::work(TaskKind kind, const std::string& name, const Cost& cost,
                                      const std::string& layer_kind) {
  const std::optional<Id> launched = issue(name, cost.host, cost.launches);
  const Id task = on_device(kind, Lane::compute, name, cost.device, layer_kind);
  if (launched) builder_.edge(*launched, task);
  return task;
}

void WorkerProgram::call(Time host, Time device) {
  if (!cpu_ && !workload_.graph) pending_host_ += host;
  pending_device_ += device;
  row_.reset();
}

/// Where nothing has been queued in this iteration: an event, which stands behind the last one's.
WorkerProgram::Id WorkerProgram::last_in_compute() {
  if (last_work_) return *last_work_;
  return on_device(TaskKind::mark, Lane::compute, "event", {}, "");
}

WorkerProgram::Id WorkerProgram::collective(const std::string& name, CollectiveKind kind,
                                            Bytes bytes) {
  const CollectiveCost cost = workload_.collective(kind, bytes);
  // On a CPU the call hands the work to the communication thread, in the computing thread's time.
  if (cpu_ && unlike_ == nullptr && cost.host > Time{}) {
    on_device(TaskKind::issue, Lane::compute, name, cost.host, "");
  }
  const Id after = last_in_compute();
  const std::optional<Id> launched =
      issue(name, row_ == kind ? cost.host : cost.host + cost.between, 1);
  row_ = kind;
  Task task;
  task.kind = TaskKind::collective;
  task.lane = Lane::communication;
  task.name = parts_.name(name);
  task.collective = parts_.collective(collectives_++, cost.collective);
  const Id id = builder_.add(task);
  builder_.edge(after, id);
  if (launched) builder_.edge(*launched, id);
  last_collective_ = id;
  return id;
}

WorkerProgram::Id WorkerProgram::collective_of_host(const std::string& name, CollectiveKind kind,
                                                    Bytes bytes) {
  if (cpu_ || workload_.graph) return collective(name, kind, bytes);
  return collective_beside(TaskKind::collective, name, kind, bytes, last_issue_);
}

WorkerProgram::Position WorkerProgram::position() {
  Position here{
      .last = last_in_compute(), .compute = builder_.count(Lane::compute) - 1, .host = {}};
  if (const std::uint32_t issued = builder_.count(Lane::host); issued > 0) here.host = issued - 1;
  return here;
}

WorkerProgram::Id WorkerProgram::add_beside(Task task, const std::string& name,
                                            std::optional<Id> after) {
  task.lane = Lane::communication;
  task.name = parts_.name(name);
  const Id id = builder_.add(task);
  if (after) builder_.edge(*after, id);
  last_collective_ = id;
  return id;
}

WorkerProgram::Id WorkerProgram::beside(TaskKind kind, const std::string& name, Time work,
                                        std::optional<Id> after) {
  Task task;
  task.kind = kind;
  task.work = work;
  return add_beside(task, name, after);
}

WorkerProgram::Id WorkerProgram::collective_beside(TaskKind kind, const std::string& name,
                                                   CollectiveKind collective, Bytes bytes,
                                                   std::optional<Id> after) {
  Task task;
  task.kind = kind;
  task.collective =
      parts_.collective(collectives_++, workload_.collective(collective, bytes).collective);
  return add_beside(task, name, after);
}

void WorkerProgram::join() {
  // The lane is in order: behind its last collective is behind all of them.
  if (last_collective_) before_next_.push_back(*last_collective_);
  last_collective_.reset();
}

void WorkerProgram::join_host() {
  if (last_collective_) hold_host("wait for gradients", *last_collective_, {});
  join();
}

void WorkerProgram::hold_host(const std::string& name, Id after, Time time) {
  if (cpu_ || workload_.graph) return;
  if (pending_host_ > Time{}) issue("calls", {}, 0);
  Task task;
  task.lane = Lane::host;
  task.work = time;
  task.name = parts_.name(name);
  const Id id = builder_.add(task);
  builder_.edge(after, id);
  row_.reset();
}

/// The program sleeps: on cores that is where it computes.
void WorkerProgram::begin_part(StepPart part) {
  for (const StepDelay& delay : delays_) {
    if (delay.part == part && delay.time > Time{}) wait(delay);
  }
}

void WorkerProgram::wait(const StepDelay& delay) {
  // A GPU is kept busy by a kernel that its host launches; before all work the host itself stops.
  const bool eager = !cpu_ && !workload_.graph;
  const bool in_work = delay.part == StepPart::forward || delay.part == StepPart::backward;
  const bool on_compute = !eager || in_work;
  if (eager && in_work) before_next_.push_back(*issue("delay", {}, 1));
  if (!delay.drawn && on_compute) {
    on_device(TaskKind::mark, Lane::compute, "delay", delay.time, "");
  } else if (!delay.drawn) {
    pending_host_ += delay.time;
  } else {
    Task task;
    task.lane = on_compute ? Lane::compute : Lane::host;
    task.name = parts_.name("delay");
    task.drawn = parts_.delay(delay);
    const Id id = builder_.add(task);
    if (!on_compute) return;  // the host's own order is enough
    for (const Id before : before_next_) builder_.edge(before, id);
    before_next_.clear();
    last_work_ = id;
  }
}

/// Several loaders take turns, so that a batch comes in a fraction of the time that each takes.
void WorkerProgram::load_input() {
  const bool alone = workload_.loaders == 0;
  const Time load = Time::picoseconds(
      multiply_divide(profile_.input_load.ps(), 1, std::max(1, workload_.loaders)));
  if (alone && (cpu_ || workload_.graph)) {
    on_device(TaskKind::input, Lane::compute, "load batch", load, "");
  } else if (alone) {
    before_next_.push_back(*issue("load batch", load, 0));
  } else {
    before_next_.push_back(on_device(TaskKind::input, Lane::loader, "load batch", load, ""));
  }
  if (profile_.input_copy == Time{} && (alone || cpu_)) return;
  const Id copied = on_device(TaskKind::input, Lane::copy, "copy batch", profile_.input_copy, "");
  before_next_.push_back(copied);
}

void WorkerProgram::begin_step() {
  begin_part(StepPart::step);
  begin_part(StepPart::input);
  if (workload_.input) load_input();
  const Cost& overhead = profile_.step_overhead;
  if (!cpu_ && workload_.graph) {
    Task launch;
    launch.kind = TaskKind::issue;
    launch.lane = Lane::host;
    launch.work = overhead.host;
    launch.launches = 1;
    launch.name = parts_.name("launch graph");
    before_next_.push_back(builder_.add(launch));
    on_device(TaskKind::mark, Lane::compute, "step", overhead.device, "");
  } else if (overhead.host > Time{} || overhead.device > Time{}) {
    work(TaskKind::mark, "step", overhead);
  }
}

void WorkerProgram::begin_pass() {
  const bool recorded = !cpu_ && workload_.graph;  // the step is launched once
  if (!recorded && profile_.step_overhead != Cost{}) {
    work(TaskKind::mark, "pass", profile_.step_overhead);
  }
}

void WorkerProgram::forward() {
  begin_part(StepPart::forward);
  for (const Layer& layer : profile_.layers) {
    if (layer.forward == Cost{}) continue;
    work(TaskKind::forward, layer.name, layer.forward, layer.kind);
  }
}

void WorkerProgram::backward_of(const Layer& layer) {
  if (layer.backward == Cost{}) return;
  work(TaskKind::backward, layer.name, layer.backward, layer.kind);
}

void WorkerProgram::optimizer() {
  work(TaskKind::optimizer, "optimizer", profile_.optimizer, "optimizer");
}

void WorkerProgram::broadcast_buffers() {
  const BufferBytes buffers = buffer_bytes(profile_);
  if (buffers.floats > Bytes{}) {
    collective("buffers", CollectiveKind::broadcast, buffers.floats);
  }
  if (buffers.counters > Bytes{}) {
    collective("batch counters", CollectiveKind::broadcast, buffers.counters);
  }
  join();
}

Program WorkerProgram::end_step() {
  // Calls after the last launch.
  if (pending_host_ > Time{}) issue("calls", {}, 0);
  if (!cpu_ && workload_.sync == Sync::step) {
    Task wait;
    wait.lane = Lane::host;
    wait.name = parts_.name("synchronise");
    const Id last = last_in_compute();
    const Id waits = builder_.add(wait);
    builder_.edge(last, waits);
    // Of collectives that were joined, and that nothing has been queued behind.
    for (const Id before : before_next_) builder_.edge(before, waits);
  }
  return builder_.build();
}

}  // namespace lockstep
