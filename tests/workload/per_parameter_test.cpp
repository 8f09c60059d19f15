// Strategies that exchange gradient by gradient after backward.
#include <algorithm>
#include <vector>

#include "sim/analysis/breakdown.h"
#include "sim/core/engine.h"
#include "sim/core/symmetry.h"
#include "sim/workload/strategy.h"
#include "tests/catch.h"
#include "tests/synthetic.h"
#include "tests/workload/run_steps.h"

namespace lockstep {
namespace {

/// two_layers() on cores: forward 100 us and backward 200 us a layer, 4 MiB each, optimizer 50 us.
/// An all-reduce takes 150 us, a gather 70 us, a scatter 60 us, adding one gradient 30 us.
Workload cpu_workload(std::uint32_t workers, const std::string& strategy) {
  Workload workload;
  workload.profiles = {two_layers()};
  workload.profile_of_worker.assign(workers, 0);
  if (strategy == "gather_scatter") {
    workload.profiles.push_back(two_layers());
    workload.profile_of_worker[0] = 1;
    workload.root_profile = 1;
  }
  workload.strategy.kind = strategy;
  workload.cpu = true;
  workload.add = {"add", {{Bytes{4 << 20}, 1, us(30), us(0)}}};
  workload.collective = [](CollectiveKind kind, Bytes bytes) {
    CollectiveCost result;
    result.collective.kind = kind;
    result.collective.bytes = bytes;
    const bool gather = kind == CollectiveKind::gather;
    result.collective.duration = us(kind == CollectiveKind::all_reduce ? 150 : (gather ? 70 : 60));
    return result;
  };
  return workload;
}

TEST_CASE("all_reduce hides nothing: one all-reduce for each parameter after backward",
          "[all_reduce]") {
  // Compute 0-600, a 600-750, b 750-900 (parameter order, not the order in which they get ready),
  // optimizer 900-950.
  for (const std::uint32_t workers : {2U, 3U}) {
    const TaskGraph graph = compile(cpu_workload(workers, "all_reduce"), Phase::steady);
    REQUIRE(graph.collectives.size() == 2);
    const EngineResult result = run_steps(graph, 3);
    for (const std::vector<Time>& worker : result.step_end) {
      CHECK(worker == std::vector<Time>{us(950), us(1900), us(2850)});
    }
    const Breakdown step = break_down(graph, result, 0)[1].breakdown;
    CHECK(step.compute == us(650));
    CHECK(step.exposed == us(300));
    CHECK(step.hidden == Time{});
  }
  const TaskGraph graph = compile(cpu_workload(2, "all_reduce"), Phase::steady);
  CHECK(graph.names[graph.programs[0].tasks[5].name] == "a.weight");
  CHECK(graph.names[graph.programs[0].tasks[6].name] == "b.weight");
}

TEST_CASE("gather_scatter: rank 0 adds while the others wait for it", "[gather_scatter]") {
  // Two workers: compute 0-600; gather a 600-670; rank 0 adds one gradient 670-700; scatter
  // 700-760; gather b 760-830, add 830-860, scatter 860-920; optimizer 920-970.
  const TaskGraph two = compile(cpu_workload(2, "gather_scatter"), Phase::steady);
  const EngineResult of_two = run_steps(two, 3);
  for (const std::vector<Time>& worker : of_two.step_end) {
    CHECK(worker == std::vector<Time>{us(970), us(1940), us(2910)});
  }
  const Breakdown root = break_down(two, of_two, 0)[1].breakdown;
  CHECK(root.compute == us(650 + 2 * 30));
  CHECK(root.exposed == us(260));
  CHECK(root.waiting == Time{});
  const Breakdown other = break_down(two, of_two, 1)[1].breakdown;
  CHECK(other.compute == us(650));
  CHECK(other.exposed == us(260));
  CHECK(other.waiting == us(60));

  // Three workers: two gradients to add each time, 60 us: 600 + 2 (70 + 60 + 60) + 50.
  const TaskGraph three = compile(cpu_workload(3, "gather_scatter"), Phase::steady);
  CHECK(run_steps(three, 3).step_end[2][0] == us(1030));
}

TEST_CASE("rank 0 stands for itself, one other for all others", "[gather_scatter]") {
  const TaskGraph graph = compile(cpu_workload(5, "gather_scatter"), Phase::steady);
  const ReducedRun reduced = reduce_symmetric(graph, {.iterations = 3, .noise = {}});
  CHECK(reduced.graph.program_of_worker.size() == 2);
  const EngineResult full = run_steps(graph, 3);
  const EngineResult few = run(reduced.graph, reduced.options);
  for (std::size_t worker = 0; worker < 5; ++worker) {
    CHECK(full.step_end[worker] == few.step_end[reduced.class_of_worker[worker]]);
  }
}

TEST_CASE("a slow worker holds up the first gather only", "[gather_scatter]") {
  // Worker 1 computes 1.5 times as long: its backward ends at 900, its optimizer takes 75. The
  // exchange takes 320: 900-1220, worker 1 ends at 1295.
  const Factor slow = Factor::of(1.5);
  const TaskGraph graph = compile(cpu_workload(2, "gather_scatter"), Phase::steady);
  const EngineResult result = run_steps(graph, 3, {{}, {slow, slow}});
  CHECK(result.step_end[0][0] == us(1270));
  CHECK(result.step_end[1][0] == us(1295));
}

/// What the host takes for the call of each collective, in program order.
std::vector<Time> calls(const std::string& strategy) {
  Workload workload = cpu_workload(2, strategy);
  workload.cpu = false;
  workload.bucket_in = {"bucket_in", {{Bytes{4 << 20}, 1, us(20), us(5)}}};
  const auto timed = workload.collective;
  workload.collective = [timed](CollectiveKind kind, Bytes bytes) {
    CollectiveCost cost = timed(kind, bytes);
    cost.host = us(10);
    cost.between = us(7);
    return cost;
  };
  const TaskGraph graph = compile(workload, Phase::steady);
  const Program& program = graph.programs.at(0);
  std::vector<std::uint32_t> names;
  for (const Task& task : program.tasks) {
    if (task.kind == TaskKind::collective) names.push_back(task.name);
  }
  std::vector<Time> times;
  for (const Task& task : program.tasks) {
    const bool call = std::ranges::find(names, task.name) != names.end();
    if (task.kind == TaskKind::issue && call) times.push_back(task.work);
  }
  return times;
}

TEST_CASE("a call of a row of calls is quicker than one behind other launches", "[calls]") {
  // The two all-reduces follow each other.
  CHECK(calls("all_reduce") == std::vector{us(17), us(10)});
  // Gathers and scatters take turns, and so do calls and the copies of buckets.
  CHECK(calls("gather_scatter") == std::vector{us(17), us(17), us(17), us(17)});
  CHECK(calls("ddp") == std::vector{us(17), us(17)});
}

}  // namespace
}  // namespace lockstep
