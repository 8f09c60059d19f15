#include "sim/analysis/breakdown.h"

#include <random>
#include <vector>

#include "sim/analysis/critical_path.h"
#include "sim/core/symmetry.h"
#include "tests/catch.h"
#include "tests/synthetic.h"

namespace lockstep {
namespace {

int between(std::mt19937& random, int least, int most) {
  return std::uniform_int_distribution(least, most)(random);
}

/// Tasks in a random order over all lanes with random edges from earlier to later ones, so that
/// they can always finish; collectives in one order for all workers.
Program random_program(std::mt19937& random, int collectives) {
  ProgramBuilder builder;
  std::vector<ProgramBuilder::Id> ids;
  int next_collective = 0;
  const int others = between(random, 5, 40);
  for (int i = 0; i < others + collectives; ++i) {
    Task task;
    const int left = others + collectives - i;
    if (between(random, 1, left) <= collectives - next_collective) {
      task.kind = TaskKind::collective;
      task.lane = Lane::communication;
      task.collective = next_collective++;
    } else {
      constexpr Lane kLanesOfWork[] = {Lane::host,    Lane::compute, Lane::compute,
                                       Lane::compute, Lane::copy,    Lane::loader};
      task.lane = kLanesOfWork[between(random, 0, 5)];
      task.kind = TaskKind::forward;
      task.work = us(between(random, 0, 100));
      task.interference = static_cast<std::uint16_t>(between(random, 0, 1));
    }
    const ProgramBuilder::Id id = builder.add(task);
    for (ProgramBuilder::Id before : ids) {
      if (between(random, 0, 7) == 0) builder.edge(before, id);
    }
    ids.push_back(id);
  }
  return builder.build();
}

TaskGraph random_graph(std::mt19937& random) {
  TaskGraph graph;
  graph.names = {"task"};
  const int collectives = between(random, 0, 4);
  for (int c = 0; c < collectives; ++c) {
    Collective collective;
    collective.duration = us(between(random, 0, 150));
    graph.collectives.push_back(collective);
  }
  graph.interference.push_back({.waiting = Factor::of(1.1), .transferring = Factor::of(1.7)});
  const int workers = between(random, 1, 4);
  for (int w = 0; w < workers; ++w) {
    graph.programs.push_back(random_program(random, collectives));
    graph.program_of_worker.push_back(static_cast<std::uint32_t>(w));
  }
  return graph;
}

TEST_CASE("the parts of every step add up to it", "[breakdown]") {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    const TaskGraph graph = random_graph(random);
    EngineOptions options;
    options.iterations = static_cast<std::uint32_t>(between(random, 1, 6));
    options.record_spans = true;
    options.noise.task = 0.3;
    const EngineResult result = run(graph, options);
    for (std::uint32_t worker = 0; worker < graph.program_of_worker.size(); ++worker) {
      const std::vector<StepParts> steps = break_down(graph, result, worker);
      Time before;
      for (std::size_t k = 0; k < steps.size(); ++k) {
        const Time end = result.step_end[worker][k];
        REQUIRE(steps[k].breakdown.step() == end - before);
        REQUIRE(steps[k].breakdown.hidden <= steps[k].breakdown.compute);
        REQUIRE(steps[k].host_busy <= end - before);
        before = end;
      }
    }
  }
}

TEST_CASE("the parts of one worker add up to the steps of all, recorded alone or not",
          "[breakdown]") {
  std::mt19937 random(13);
  for (int round = 0; round < 100; ++round) {
    const TaskGraph graph = random_graph(random);
    EngineOptions options;
    options.iterations = 5;
    options.record_spans = true;
    options.noise.task = 0.3;
    const EngineResult result = run(graph, options);
    std::vector<Time> ends(options.iterations);
    for (const std::vector<Time>& worker : result.step_end) {
      for (std::size_t k = 0; k < ends.size(); ++k) ends[k] = std::max(ends[k], worker[k]);
    }
    for (std::uint32_t worker = 0; worker < graph.program_of_worker.size(); ++worker) {
      const std::vector<StepParts> steps = break_down(graph, result, worker, ends);
      for (std::size_t k = 0; k < steps.size(); ++k) {
        REQUIRE(steps[k].breakdown.step() == ends[k] - (k == 0 ? Time{} : ends[k - 1]));
      }
      // Rounded to the nearest picosecond once.
      const std::int64_t four = (ends.back() - ends.front()).ps();
      REQUIRE(mean_parts(steps, 1).breakdown.step().ps() == (four + 2) / 4);
      EngineOptions alone = options;
      alone.spans_of = worker;
      const EngineResult one = run(graph, alone);
      REQUIRE(one.tasks.size() == graph.programs[worker].tasks.size() * options.iterations);
      REQUIRE(break_down(graph, one, worker, ends).at(2).breakdown == steps[2].breakdown);
    }
  }
}

TEST_CASE("a critical path reaches from the end to the start without holes", "[critical_path]") {
  std::mt19937 random(12);
  for (int round = 0; round < 200; ++round) {
    const TaskGraph graph = random_graph(random);
    EngineOptions options;
    options.iterations = 3;
    options.record_spans = true;
    const EngineResult result = run(graph, options);
    const std::vector<PathStep> path = critical_path(graph, result, 2);
    REQUIRE_FALSE(path.empty());
    Time last;
    for (const std::vector<Time>& worker : result.step_end) last = std::max(last, worker[2]);
    CHECK(path.back().end == last);
    for (std::size_t i = 1; i < path.size(); ++i) REQUIRE(path[i].start == path[i - 1].end);
  }
}

}  // namespace
}  // namespace lockstep
