#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "sim/core/task_graph.h"

namespace lockstep::testing {

/// A random graph and, per program, an order in which its tasks can run one after another.
struct RandomGraph {
  TaskGraph graph;
  std::vector<std::vector<std::uint32_t>> program_order;
};

/// What a random program consists of before it is laid out: tasks in program order.
struct Draft {
  std::vector<Task> tasks;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;  ///< earlier to later
};

struct RandomGraphOptions {
  int collectives = 3;
  bool rates = false;         ///< interference, and transfers that slow beside compute
  bool launch_queue = false;  ///< the host issues into a short queue
};

inline int between(std::mt19937& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
}

/// Works are small whole numbers of picoseconds, some zero, so that many things fall together.
inline Draft draft_program(std::mt19937& random, const RandomGraphOptions& options) {
  Draft draft;
  const int tasks = between(random, 4, 24) + options.collectives;
  std::vector<int> places;  // of the collectives, in program order
  for (int i = 0; i < options.collectives; ++i) places.push_back(between(random, 0, tasks - 1));
  std::sort(places.begin(), places.end());
  const auto add = [&](const Task& task) {
    draft.tasks.push_back(task);
    return static_cast<std::uint32_t>(draft.tasks.size() - 1);
  };
  const auto depend_on_earlier = [&](std::uint32_t task) {
    for (int edges = between(random, 0, 2); edges > 0 && task > 0; --edges) {
      draft.edges.emplace_back(random() % task, task);
    }
  };
  int collective = 0;
  for (int i = 0; i < tasks; ++i) {
    for (; collective < options.collectives && places[static_cast<std::size_t>(collective)] == i;
         ++collective) {
      depend_on_earlier(add(
          {.collective = collective, .kind = TaskKind::collective, .lane = Lane::communication}));
    }
    Task task;
    task.work = Time::picoseconds(between(random, 0, 3) == 0 ? 0 : between(random, 1, 40));
    task.lane = static_cast<Lane>(random() % kLanes);
    task.interference = static_cast<std::uint16_t>(options.rates ? random() % 3 : 0);
    task.name = static_cast<std::uint32_t>(i);
    if (options.launch_queue && task.lane == Lane::compute) {
      const auto launches = static_cast<std::uint16_t>(between(random, 1, 3));
      const auto issue = add({.work = Time::picoseconds(between(random, 0, 6)),
                              .launches = launches,
                              .kind = TaskKind::issue,
                              .lane = Lane::host});
      draft.edges.emplace_back(issue, issue + 1);
    }
    depend_on_earlier(add(task));
  }
  return draft;
}

/// The draft as a Program, and where its tasks came to stand there, in program order.
inline std::pair<Program, std::vector<std::uint32_t>> lay_out(const Draft& draft) {
  ProgramBuilder builder;
  for (const Task& task : draft.tasks) builder.add(task);
  for (const auto& [before, after] : draft.edges) builder.edge(before, after);
  const Program program = builder.build();
  std::array<std::uint32_t, kLanes> next{};
  std::copy_n(program.lane_begin.begin(), kLanes, next.begin());
  std::vector<std::uint32_t> order;
  for (const Task& task : draft.tasks) order.push_back(next[static_cast<std::size_t>(task.lane)]++);
  return {program, order};
}

inline RandomGraph random_graph(unsigned seed, const RandomGraphOptions& options = {}) {
  std::mt19937 random(seed);
  RandomGraph result;
  TaskGraph& graph = result.graph;
  const int programs = between(random, 1, 3);
  for (int p = 0; p < programs; ++p) {
    auto [program, order] = lay_out(draft_program(random, options));
    graph.programs.push_back(std::move(program));
    result.program_order.push_back(std::move(order));
  }
  for (int w = between(random, 1, 5); w > 0; --w) {
    graph.program_of_worker.push_back(static_cast<std::uint32_t>(between(random, 0, programs - 1)));
  }
  for (int c = 0; c < options.collectives; ++c) {
    graph.collectives.push_back({.duration = Time::picoseconds(between(random, 0, 30))});
  }
  if (options.rates) {
    graph.interference.push_back({Factor::of(1.1), Factor::of(1.7)});
    graph.interference.push_back({Factor::of(1.0), Factor::of(3.3)});
    if (random() % 2 == 0) graph.collective_beside_compute = Factor::of(1.4);
    for (Collective& collective : graph.collectives) {
      if (random() % 3 == 0) collective.beside_compute = Factor::of(2.6);
      if (random() % 3 == 0) collective.working = Factor::of(0.3);
    }
  }
  if (options.launch_queue) graph.launch_queue = static_cast<std::uint32_t>(between(random, 1, 6));
  return result;
}

}  // namespace lockstep::testing
