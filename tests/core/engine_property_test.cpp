// What holds for every run.
#include <algorithm>
#include <random>
#include <thread>

#include "sim/core/engine.h"
#include "tests/catch.h"
#include "tests/core/random_graph.h"

namespace lockstep {
namespace {

using testing::Draft;
using testing::random_graph;
using testing::RandomGraph;

EngineOptions recorded(std::uint32_t iterations) {
  EngineOptions options;
  options.iterations = iterations;
  options.record_spans = true;
  return options;
}

Time work_of(const TaskGraph& graph, const Task& task) {
  if (task.collective == kNoCollective) return task.work;
  return graph.collectives[static_cast<std::size_t>(task.collective)].duration;
}

/// The longest way through edges and lane orders of one worker's iteration.
Time critical_path(const RandomGraph& random, std::uint32_t program_index) {
  const Program& program = random.graph.programs[program_index];
  std::vector<Time> ready(program.tasks.size());
  std::array<Time, kLanes> lane_free{};
  Time longest;
  for (const std::uint32_t t : random.program_order[program_index]) {
    Time& lane = lane_free[static_cast<std::size_t>(program.tasks[t].lane)];
    lane = std::max(lane, ready[t]) + work_of(random.graph, program.tasks[t]);
    for (auto s = program.first_successor[t]; s < program.first_successor[t + 1]; ++s) {
      ready[program.successors[s]] = std::max(ready[program.successors[s]], lane);
    }
    longest = std::max(longest, lane);
  }
  return longest;
}

TEST_CASE("no step is shorter than the critical path or the busiest lane") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    const RandomGraph random = random_graph(seed, {.rates = seed % 2 == 0});
    const TaskGraph& graph = random.graph;
    constexpr std::uint32_t kIterations = 5;
    const EngineResult result = run(graph, recorded(kIterations));
    for (std::uint32_t w = 0; w < graph.program_of_worker.size(); ++w) {
      const std::uint32_t p = graph.program_of_worker[w];
      CHECK(result.step_end[w][0] >= critical_path(random, p));
      std::array<Time, kLanes> busy{};
      for (const Task& task : graph.programs[p].tasks) {
        busy[static_cast<std::size_t>(task.lane)] += work_of(graph, task) * kIterations;
      }
      CHECK(result.step_end[w].back() >= *std::max_element(busy.begin(), busy.end()));
    }
  }
}

TEST_CASE("tasks of a lane start in order, each after the end of the one before") {
  for (unsigned seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    const TaskGraph graph = random_graph(seed, {.rates = true, .launch_queue = true}).graph;
    const EngineResult result = run(graph, recorded(6));
    std::vector<std::array<Time, kLanes>> lane_free(graph.program_of_worker.size());
    for (const TaskSpan& span : result.tasks) {  // by iteration, worker, task: in lane order
      const Program& program = graph.programs[graph.program_of_worker[span.worker]];
      Time& free = lane_free[span.worker][static_cast<std::size_t>(program.tasks[span.task].lane)];
      REQUIRE(span.start >= free);
      REQUIRE(span.end >= span.start);
      free = span.end;
    }
  }
}

TEST_CASE("a worker enters no iteration beyond its window") {
  const TaskGraph graph = random_graph(11).graph;
  const EngineResult result = run(graph, recorded(12));
  for (const TaskSpan& span : result.tasks) {
    if (span.iteration < kIterationWindow) continue;
    CHECK(span.start >= result.step_end[span.worker][span.iteration - kIterationWindow]);
  }
}

TEST_CASE("the order in which lanes and edges are given to the builder leaves no trace") {
  std::mt19937 random(5);
  for (int trial = 0; trial < 50; ++trial) {
    const Draft draft = testing::draft_program(random, {.collectives = 2, .rates = true});
    // Another order of the tasks that keeps the order within each lane: lanes at random, each
    // yielding its next task.
    std::array<std::vector<std::uint32_t>, kLanes> by_lane;
    for (std::uint32_t t = 0; t < draft.tasks.size(); ++t) {
      by_lane[static_cast<std::size_t>(draft.tasks[t].lane)].push_back(t);
    }
    std::vector<std::size_t> lanes;
    for (const Task& task : draft.tasks) lanes.push_back(static_cast<std::size_t>(task.lane));
    std::shuffle(lanes.begin(), lanes.end(), random);
    std::array<std::size_t, kLanes> next{};
    std::vector<std::uint32_t> place(draft.tasks.size());
    Draft shuffled;
    for (const std::size_t lane : lanes) {
      const std::uint32_t task = by_lane[lane][next[lane]++];
      place[task] = static_cast<std::uint32_t>(shuffled.tasks.size());
      shuffled.tasks.push_back(draft.tasks[task]);
    }
    for (const auto& [before, after] : draft.edges) {
      shuffled.edges.emplace_back(place[before], place[after]);
    }
    std::shuffle(shuffled.edges.begin(), shuffled.edges.end(), random);

    REQUIRE(testing::lay_out(shuffled).first == testing::lay_out(draft).first);
  }
}

TEST_CASE("runs in many threads give the same bytes as one run") {
  const TaskGraph graph = random_graph(4, {.rates = true, .launch_queue = true}).graph;
  EngineOptions options = recorded(20);
  options.noise = {0.1, 0.1, 0.1};
  const EngineResult alone = run(graph, options);
  std::vector<EngineResult> results(8);
  {
    std::vector<std::jthread> threads;
    for (EngineResult& result : results) {
      threads.emplace_back([&] { result = run(graph, options); });
    }
  }
  for (const EngineResult& result : results) CHECK(result == alone);
}

TEST_CASE("recording spans changes no time") {
  const TaskGraph graph = random_graph(9, {.rates = true}).graph;
  EngineOptions options = recorded(10);
  const EngineResult with = run(graph, options);
  options.record_spans = false;
  const EngineResult without = run(graph, options);
  CHECK(without.tasks.empty());
  CHECK(without.step_end == with.step_end);
  CHECK(without.collectives == with.collectives);
}

}  // namespace
}  // namespace lockstep
