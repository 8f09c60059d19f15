// Horovod: a thread beside training looks once a cycle which gradients all ranks have, fuses them
// and reduces them, while backward goes on. Which gradients meet in a group depends on when they
// get ready and on how long the groups before took, and those times on the groups. A graph is
// static: the engine runs it, the thread's loop (run_cycles) is followed on the times that came
// out, and the graph written again, until the groups stay. A cycle depends on what was before it
// alone, so that each round settles at least one more.
//
// On the communication lane, which is the thread: the time until the cycle begins, its negotiation,
// copies into the fusion buffer, the all-reduce, copies out of it. Workers on cores negotiate over
// the backend of their gradients. On GPUs the hosts do, beside the lane, which is NCCL's stream: a
// gradient can be negotiated when the host has issued what makes it, the thread then waits for the
// device (as until v0.21; later versions let the stream wait), and launches without waiting for the
// end. The program issues its optimizer when the thread has launched all: no host runs ahead.
//
// Approximated: groups are those of a step without noise; a step begins with a cycle, since the
// thread pauses between steps (Horovod's runs on, in no fixed relation to them); cycles that find
// nothing are not in the graph: on cores they slow compute by the share of a core that their
// negotiation takes; on a GPU a hook costs what DDP's costs, and the thread's own launches nothing.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>

#include "sim/analysis/spans.h"
#include "sim/core/error.h"
#include "sim/core/symmetry.h"
#include "sim/workload/fusion.h"
#include "sim/workload/strategy.h"

namespace lockstep {
namespace {

/// Of the graph's rewriting; what has not settled by then alternates between groups that are as
/// good as each other.
constexpr int kMostRounds = 24;

/// Where each gradient is made, in the lanes of one program.
using Places = std::vector<WorkerProgram::Position>;

/// What the last run of the engine, or before it a guess, says.
struct Times {
  std::vector<ReadyTimes> ready;
  Time negotiation;
  std::map<Bucket, Time> all_reduce;  ///< of groups that were run
};

class Compiler {
 public:
  Compiler(const Workload& workload, Phase phase)
      : workload_(workload),
        phase_(phase),
        gradients_(gradients_of(parameters_as_ready(workload.profiles.front()))) {
    slow_by_idle_cycles();
  }

  TaskGraph compile() {
    Times times{.ready = std::vector<ReadyTimes>(gradients_.size()),
                .negotiation = workload_.cpu ? alone(negotiation_) : workload_.control_round,
                .all_reduce = {}};
    plan(times);
    TaskGraph graph = write();
    for (int round = 0; round < kMostRounds && !gradients_.empty(); ++round) {
      const std::vector<FusionCycle> before = cycles_;
      times = run_engine(graph);
      plan(times);
      graph = write();
      if (cycles_ == before) break;
    }
    return graph;
  }

 private:
  void plan(const Times& times);
  TaskGraph write();
  void write_worker(WorkerProgram& worker, std::uint32_t profile);
  void write_negotiation(WorkerProgram& worker, std::size_t cycle);
  void write_group(WorkerProgram& worker, const std::string& name, const Bucket& group,
                   std::optional<WorkerProgram::Id> after);
  Times run_engine(const TaskGraph& graph) const;
  void read_collectives(const EngineResult& result, std::size_t iteration, Times& times) const;
  void slow_by_idle_cycles();
  Time alone(const Collective& collective) const;
  Bucket waited_for(const FusionCycle& cycle, std::size_t group) const;
  Time undisturbed(Time wait) const;
  Time copy_time(const Bucket& group) const {
    return group.size() < 2 ? Time{}
                            : copy_cost(workload_.bucket_in, bytes_of(group, gradients_)).device;
  }
  Collective collective_of(CollectiveKind kind, Bytes bytes) const {
    return workload_.collective(kind, bytes).collective;
  }

  Workload workload_;
  const Phase phase_;
  const std::vector<Gradient> gradients_;  ///< in the order in which they get ready
  const Collective negotiation_ =
      collective_of(CollectiveKind::all_reduce, negotiation_bytes(gradients_.size()));
  std::vector<FusionCycle> cycles_;
  std::vector<std::vector<Time>> waits_;  ///< by cycle and group, see write_worker
  Time last_launch_;                      ///< after the last gradient of its group is made
  std::vector<Places> places_;            ///< by profile
};

/// Of one collective that nothing disturbs.
Time Compiler::alone(const Collective& collective) const {
  if (!collective.expanded) return collective.duration;
  ProgramBuilder builder;
  builder.add({.collective = 0, .kind = TaskKind::collective, .lane = Lane::communication});
  TaskGraph graph;
  graph.programs.push_back(builder.build());
  graph.program_of_worker.assign(workload_.profile_of_worker.size(), 0);
  graph.collectives.push_back(collective);
  const ReducedRun reduced = reduce_symmetric(graph, {.network = workload_.network});
  return run(reduced.graph, reduced.options).step_end.front().front();
}

/// The thread negotiates all the time, on the core that computes.
void Compiler::slow_by_idle_cycles() {
  if (!workload_.cpu) return;
  const Time busy = alone(negotiation_);
  const Time period = std::max(workload_.strategy.cycle_time, busy);
  const Factor slowed = Factor::of(1 + busy.seconds() / period.seconds());
  for (Profile& profile : workload_.profiles) {
    for (Layer& layer : profile.layers) {
      layer.forward.device = scale(layer.forward.device, slowed);
      layer.backward.device = scale(layer.backward.device, slowed);
    }
  }
}

/// A negotiation is about all that its cycle reduces, and comes before the first of it.
Bucket Compiler::waited_for(const FusionCycle& cycle, std::size_t group) const {
  if (!workload_.cpu || group > 0) return cycle.groups[group];
  Bucket all;
  for (const Bucket& one : cycle.groups) all.insert(all.end(), one.begin(), one.end());
  return all;
}

/// A wait as programs hold it: a straggler's slow-down, who is the last to be ready and so the one
/// whose waits count, will stretch it.
Time Compiler::undisturbed(Time wait) const {
  Factor slowest;
  for (const Slowdown& slowdown : workload_.slowdowns) slowest = std::max(slowest, slowdown.device);
  constexpr std::int64_t kOne = std::int64_t{1} << 32;
  return Time::picoseconds(
      multiply_divide(wait.ps(), kOne, static_cast<std::int64_t>(slowest.raw())));
}

void Compiler::plan(const Times& times) {
  const auto reduction = [&](const Bucket& group) {
    const auto known = times.all_reduce.find(group);
    const Time all_reduce =
        known != times.all_reduce.end()
            ? known->second
            : alone(collective_of(CollectiveKind::all_reduce, bytes_of(group, gradients_)));
    return all_reduce + copy_time(group) * 2;
  };
  cycles_ = run_cycles(
      gradients_, times.ready, workload_.strategy,
      {.negotiation = times.negotiation, .reduction = reduction, .thread_reduces = workload_.cpu});
  waits_.clear();
  Time lane_free;
  for (const FusionCycle& cycle : cycles_) {
    std::vector<Time>& waits = waits_.emplace_back();
    for (std::size_t g = 0; g < cycle.groups.size(); ++g) {
      // On cores the cycle's first group waits for its beginning, and the others follow.
      const Time start = !workload_.cpu ? cycle.launches[g] : g == 0 ? cycle.begin : Time{};
      Time held = lane_free;
      Time made;
      for (const int member : waited_for(cycle, g)) {
        made = std::max(made, times.ready[static_cast<std::size_t>(member)].ready);
      }
      held = std::max(held, made);
      last_launch_ = undisturbed(std::max(Time{}, cycle.launches[g] - made));
      waits.push_back(undisturbed(std::max(Time{}, start - held)));
      lane_free = std::max(lane_free, cycle.launches[g]) + reduction(cycle.groups[g]);
    }
  }
}

TaskGraph Compiler::write() {
  places_.assign(workload_.profiles.size(), {});
  return compile_workers(workload_, [this](WorkerProgram& worker, std::uint32_t profile) {
    write_worker(worker, profile);
  });
}

void Compiler::write_worker(WorkerProgram& worker, std::uint32_t profile) {
  const Profile& costs = worker.profile();
  std::map<const Parameter*, std::size_t> index_of;
  for (const Parameter* parameter : parameters_as_ready(costs)) {
    index_of.emplace(parameter, index_of.size());
  }
  Places& places = places_[profile];
  places.resize(gradients_.size());
  worker.forward();
  worker.backward([&](const Layer& layer) {
    for (const Parameter& parameter : layer.parameters) {
      worker.call(costs.gradient_hook.host, costs.gradient_hook.device);
      places[index_of.at(&parameter)] = worker.position();
    }
  });
  const auto last_of = [&places](const Bucket& group) {
    WorkerProgram::Id last = 0;
    for (const int member : group) {
      last = std::max(last, places[static_cast<std::size_t>(member)].last);
    }
    return last;
  };
  int number = 0;
  for (std::size_t c = 0; c < cycles_.size(); ++c) {
    for (std::size_t g = 0; g < cycles_[c].groups.size(); ++g) {
      worker.beside(TaskKind::mark, "cycle", waits_[c][g], last_of(waited_for(cycles_[c], g)));
      if (workload_.cpu && g == 0) write_negotiation(worker, c);
      const Bucket& group = cycles_[c].groups[g];
      write_group(worker, fmt::format("group {}", number++), group, last_of(group));
    }
  }
  // The optimizer begins when the thread has launched everything.
  if (!cycles_.empty()) {
    worker.hold_host("wait for the thread", last_of(cycles_.back().groups.back()), last_launch_);
  }
  worker.join();
  worker.optimizer();
}

/// In a first step the ranks' lists go to rank 0, and its answer to all.
void Compiler::write_negotiation(WorkerProgram& worker, std::size_t cycle) {
  const std::string name = fmt::format("negotiation {}", cycle);
  worker.collective_beside(TaskKind::mark, name, CollectiveKind::all_reduce,
                           negotiation_bytes(gradients_.size()));
  if (phase_ == Phase::steady) return;
  const Bytes requests = request_bytes(gradients_.size());
  worker.collective_beside(TaskKind::mark, name + " requests", CollectiveKind::gather, requests);
  worker.collective_beside(TaskKind::mark, name + " answer", CollectiveKind::broadcast, requests);
}

void Compiler::write_group(WorkerProgram& worker, const std::string& name, const Bucket& group,
                           std::optional<WorkerProgram::Id> after) {
  const Time copy = copy_time(group);
  if (group.size() > 1) worker.beside(TaskKind::bucket_copy, name + " copy in", copy, after);
  worker.collective_beside(TaskKind::collective, name, CollectiveKind::all_reduce,
                           bytes_of(group, gradients_), after);
  if (group.size() > 1) worker.beside(TaskKind::bucket_copy, name + " copy out", copy);
}

/// Of a steady step: from the moment in which the last worker has begun it.
Times Compiler::run_engine(const TaskGraph& graph) const {
  EngineOptions options{.iterations = 3,
                        .slowdowns = workload_.slowdowns,
                        .record_spans = true,
                        .network = workload_.network};
  const ReducedRun reduced = reduce_symmetric(graph, options);
  const EngineResult result = run(reduced.graph, reduced.options);
  const std::size_t last = options.iterations - 1;
  Time begin;
  for (const auto& ends : result.step_end) begin = std::max(begin, ends[last - 1]);

  Times times{
      .ready = std::vector<ReadyTimes>(gradients_.size()), .negotiation = {}, .all_reduce = {}};
  for (std::uint32_t w = 0; w < reduced.graph.program_of_worker.size(); ++w) {
    const WorkerSpans spans(reduced.graph, result, w);
    const auto end_of = [&](Lane lane, std::uint32_t place) {
      const std::uint32_t first = spans.program().lane_begin[static_cast<std::size_t>(lane)];
      return spans.task(last, first + place).end - begin;
    };
    const Places& places = places_[reduced.graph.program_of_worker[w]];
    for (std::size_t i = 0; i < places.size(); ++i) {
      ReadyTimes& ready = times.ready[i];
      const Time made = end_of(Lane::compute, places[i].compute);
      ready.ready = std::max(ready.ready, made);
      const Time named = places[i].host ? end_of(Lane::host, *places[i].host) : made;
      ready.negotiable = std::max(ready.negotiable, named);
    }
  }
  read_collectives(result, last, times);
  return times;
}

/// From the last rank's launch to the last rank's end. The graph's collectives are the cycles' in
/// their order; the first negotiation stands for those beside backward.
void Compiler::read_collectives(const EngineResult& result, std::size_t iteration,
                                Times& times) const {
  const std::size_t workers = result.step_end.size();
  const std::size_t per_step = result.collectives.size() / workers / result.step_end[0].size();
  std::size_t next = iteration * per_step;
  const auto take = [&] {
    Time launch, end;
    for (std::size_t w = 0; w < workers; ++w) {
      const CollectiveSpan& span = result.collectives[next * workers + w];
      launch = std::max(launch, span.launch);
      end = std::max(end, span.end);
    }
    ++next;
    return end - launch;
  };
  times.negotiation = workload_.control_round;
  for (const FusionCycle& cycle : cycles_) {
    if (workload_.cpu) {
      Time negotiation = take();
      if (phase_ == Phase::first) negotiation += take() + take();
      if (&cycle == &cycles_.front()) times.negotiation = negotiation;
    }
    for (const Bucket& group : cycle.groups) times.all_reduce[group] = take();
  }
}

}  // namespace

TaskGraph compile_horovod(const Workload& workload, Phase phase) {
  return Compiler(workload, phase).compile();
}

}  // namespace lockstep
