#include "sim/core/task_graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "sim/core/error.h"

namespace lockstep {
namespace {

[[noreturn]] void reject_graph(const std::string& what, std::string_view hint) {
  throw InputError({}, "task graph", what, hint);
}

/// Successors of every task by the edges and, within a lane, the next task; Kahn's algorithm.
/// Returns the tasks that no order can place: those on cycles or behind them.
std::vector<std::uint32_t> unplaceable(const Program& program) {
  const auto count = static_cast<std::uint32_t>(program.tasks.size());
  std::vector<std::uint32_t> waits = program.dependency_count;
  const auto next_in_lane = [&](std::uint32_t task) {
    return task + 1 < count && program.tasks[task].lane == program.tasks[task + 1].lane;
  };
  for (std::uint32_t task = 0; task < count; ++task) {
    if (next_in_lane(task)) ++waits[task + 1];
  }
  std::vector<std::uint32_t> ready;
  for (std::uint32_t task = 0; task < count; ++task) {
    if (waits[task] == 0) ready.push_back(task);
  }
  const auto release = [&](std::uint32_t task) {
    if (--waits[task] == 0) ready.push_back(task);
  };
  while (!ready.empty()) {
    const std::uint32_t task = ready.back();
    ready.pop_back();
    for (std::uint32_t s = program.first_successor[task]; s < program.first_successor[task + 1];
         ++s) {
      release(program.successors[s]);
    }
    if (next_in_lane(task)) release(task + 1);
  }
  std::vector<std::uint32_t> left;
  for (std::uint32_t task = 0; task < count; ++task) {
    if (waits[task] > 0) left.push_back(task);
  }
  return left;
}

void validate_program(const TaskGraph& graph, const Program& program) {
  if (program.tasks.empty()) reject_graph("a program without tasks", "a step does something");
  std::vector<std::uint32_t> uses(graph.collectives.size(), 0);
  for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
    const Task& task = program.tasks[t];
    const auto complain = [&](std::string_view what, std::string_view hint) {
      reject_graph(fmt::format("{} {}", describe_task(graph, program, t), what), hint);
    };
    if (task.work < Time()) complain("has work below zero", "work is a span of time");
    if (task.interference >= graph.interference.size()) complain("has no interference entry", "");
    if (task.drawn > graph.delays.size()) complain("lasts as a delay that is not there", "");
    if (task.drawn > 0 && (task.work > Time() || task.collective != kNoCollective)) {
      complain("has work beside its drawn delay", "one task each");
    }
    if (task.collective != kNoCollective) {
      if (task.collective < 0 ||
          static_cast<std::size_t>(task.collective) >= graph.collectives.size()) {
        complain("refers to a collective that is not there", "");
      }
      if (task.lane != Lane::communication) {
        complain("is a collective", "collectives go on the communication lane");
      }
      ++uses[static_cast<std::size_t>(task.collective)];
    }
    if (task.launches > 0) {
      const auto begin = program.successors.begin() + program.first_successor[t];
      const auto end = program.successors.begin() + program.first_successor[t + 1];
      const bool worked_off = std::any_of(begin, end, [&](std::uint32_t successor) {
        return program.tasks[successor].lane != Lane::host;
      });
      if (task.lane != Lane::host || !worked_off) {
        complain("launches kernels that no task works off",
                 "a host task with launches needs an edge to its device task");
      }
    }
  }
  for (std::size_t c = 0; c < uses.size(); ++c) {
    if (uses[c] != 1) {
      reject_graph(
          fmt::format("collective {} is held {} times by one worker's program", c, uses[c]),
          "every worker takes part exactly once");
    }
  }
}

void validate_backups(const TaskGraph& graph) {
  if (graph.backups >= graph.program_of_worker.size()) {
    reject_graph("as many backup workers as workers", "some must be left to wait for");
  }
  if (graph.collectives.empty()) reject_graph("backup workers and nothing to exchange", "");
  for (const Collective& collective : graph.collectives) {
    if (collective.expanded) {
      reject_graph("backup workers in a collective step by step", "give it a duration");
    }
  }
}

}  // namespace

void validate(const TaskGraph& graph) {
  if (graph.program_of_worker.empty()) reject_graph("no workers", "give every worker a program");
  for (const std::uint32_t program : graph.program_of_worker) {
    if (program >= graph.programs.size()) reject_graph("a worker's program is not there", "");
  }
  const auto is_zero = [](const Factor& factor) { return factor.raw() == 0; };
  if (is_zero(graph.collective_beside_compute) ||
      std::any_of(graph.interference.begin(), graph.interference.end(), [&](const auto& entry) {
        return is_zero(entry.waiting) || is_zero(entry.transferring);
      })) {
    reject_graph("a slow-down of zero", "factors are one or more where work slows");
  }
  for (const Collective& collective : graph.collectives) {
    const StepCost& step = collective.step;
    if (collective.duration < Time() || collective.bytes < Bytes{} || step.latency < Time() ||
        step.rate < Bandwidth{} || step.reduction < Bandwidth{} || step.element <= Bytes{} ||
        step.segment < Bytes{}) {
      reject_graph("a collective with a duration, size or rate below zero", "");
    }
    if (is_zero(collective.beside_compute)) {
      reject_graph("a slow-down of zero", "factors are one or more where work slows");
    }
    if (collective.working > Factor{}) reject_graph("a share of time above one", "");
  }
  for (const DrawnDelay& delay : graph.delays) {
    if (delay.time < Time()) reject_graph("a delay below zero", "a delay is a span of time");
  }
  if (graph.backups > 0) validate_backups(graph);
  for (const Program& program : graph.programs) validate_program(graph, program);
}

std::string describe_task(const TaskGraph& graph, const Program& program, std::uint32_t task) {
  const Task& t = program.tasks[task];
  const std::uint32_t place = task - program.lane_begin[static_cast<std::size_t>(t.lane)];
  const std::string name =
      t.name < graph.names.size() ? fmt::format("\"{}\"", graph.names[t.name]) : "";
  return fmt::format("{} task {}{}{} of the {} lane", to_string(t.kind), name,
                     name.empty() ? "" : ", number ", place, to_string(t.lane));
}

std::string_view to_string(Lane lane) {
  switch (lane) {
    case Lane::host:
      return "host";
    case Lane::compute:
      return "compute";
    case Lane::communication:
      return "communication";
    case Lane::copy:
      return "copy";
    case Lane::loader:
      return "loader";
  }
  return "?";
}

std::string_view to_string(TaskKind kind) {
  switch (kind) {
    case TaskKind::issue:
      return "issue";
    case TaskKind::forward:
      return "forward";
    case TaskKind::backward:
      return "backward";
    case TaskKind::bucket_copy:
      return "bucket_copy";
    case TaskKind::collective:
      return "collective";
    case TaskKind::reduce:
      return "reduce";
    case TaskKind::optimizer:
      return "optimizer";
    case TaskKind::input:
      return "input";
    case TaskKind::mark:
      return "mark";
  }
  return "?";
}

std::string_view to_string(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::gather:
      return "gather";
    case CollectiveKind::scatter:
      return "scatter";
    case CollectiveKind::reduce:
      return "reduce";
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::all_to_all:
      return "all_to_all";
  }
  return "?";
}

std::string_view to_string(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::ring:
      return "ring";
    case Algorithm::gloo_ring:
      return "gloo_ring";
    case Algorithm::recursive_doubling:
      return "recursive_doubling";
    case Algorithm::halving_doubling:
      return "halving_doubling";
    case Algorithm::tree:
      return "tree";
    case Algorithm::linear:
      return "linear";
    case Algorithm::chain:
      return "chain";
    case Algorithm::recursive_halving:
      return "recursive_halving";
    case Algorithm::pairwise:
      return "pairwise";
    case Algorithm::hierarchical:
      return "hierarchical";
    case Algorithm::double_tree:
      return "double_tree";
  }
  return "?";
}

ProgramBuilder::Id ProgramBuilder::add(const Task& task) {
  LOCKSTEP_ASSERT(tasks_.size() < std::numeric_limits<Id>::max(), "tasks fit 32 bits");
  tasks_.push_back(task);
  ++count_[static_cast<std::size_t>(task.lane)];
  return static_cast<Id>(tasks_.size() - 1);
}

void ProgramBuilder::edge(Id before, Id after) {
  LOCKSTEP_ASSERT(before < tasks_.size() && after < tasks_.size(), "an edge joins added tasks");
  edges_.emplace_back(before, after);
}

Program ProgramBuilder::build() const {
  Program program;
  std::vector<Id> order(tasks_.size());
  std::iota(order.begin(), order.end(), Id{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](Id a, Id b) { return tasks_[a].lane < tasks_[b].lane; });
  std::vector<std::uint32_t> place(tasks_.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    program.tasks.push_back(tasks_[order[i]]);
    ++program.lane_begin[static_cast<std::size_t>(tasks_[order[i]].lane) + 1];
  }
  std::partial_sum(program.lane_begin.begin(), program.lane_begin.end(),
                   program.lane_begin.begin());

  // Sorted and without repeats, so that the order in which edges were given leaves no trace.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  edges.reserve(edges_.size());
  for (const auto& [before, after] : edges_) edges.emplace_back(place[before], place[after]);
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  program.first_successor.assign(tasks_.size() + 1, 0);
  program.dependency_count.assign(tasks_.size(), 0);
  for (const auto& [before, after] : edges) {
    ++program.first_successor[before + 1];
    ++program.dependency_count[after];
    program.successors.push_back(after);
  }
  std::partial_sum(program.first_successor.begin(), program.first_successor.end(),
                   program.first_successor.begin());

  const std::vector<std::uint32_t> stuck = unplaceable(program);
  if (!stuck.empty()) {
    reject_graph(
        fmt::format("{} of {} tasks can never start, the first of them the {}", stuck.size(),
                    program.tasks.size(), describe_task({}, program, stuck.front())),
        "edges and lane orders form a cycle");
  }
  return program;
}

}  // namespace lockstep
