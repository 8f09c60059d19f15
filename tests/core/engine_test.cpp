#include "sim/core/engine.h"

#include <limits>
#include <utility>
#include <vector>

#include "sim/core/error.h"
#include "tests/catch.h"

// Times in these tests are whole microseconds; comments give the schedule in them.
namespace lockstep {
namespace {

Time us(std::int64_t n) {
  return Time::microseconds(n);
}
Task work(Lane lane, int time) {
  return {.work = us(time), .lane = lane};
}
Task collective(int index) {
  return {.collective = index, .kind = TaskKind::collective, .lane = Lane::communication};
}
Task issue(int time, std::uint16_t launches = 1) {
  return {.work = us(time), .launches = launches, .kind = TaskKind::issue, .lane = Lane::host};
}
Task mark(Lane lane) {
  return {.kind = TaskKind::mark, .lane = lane};
}

TaskGraph graph_of(std::vector<Program> programs, std::vector<Collective> collectives = {}) {
  TaskGraph graph;
  graph.programs = std::move(programs);
  graph.collectives = std::move(collectives);
  for (std::uint32_t w = 0; w < graph.programs.size(); ++w) graph.program_of_worker.push_back(w);
  return graph;
}

EngineOptions recorded(std::uint32_t iterations = 1) {
  EngineOptions options;
  options.iterations = iterations;
  options.record_spans = true;
  return options;
}

/// Starts and ends in microseconds, by iteration, worker, task.
std::vector<std::pair<double, double>> spans(const EngineResult& result) {
  std::vector<std::pair<double, double>> spans;
  for (const TaskSpan& span : result.tasks) spans.emplace_back(span.start.us(), span.end.us());
  return spans;
}
using Spans = std::vector<std::pair<double, double>>;

TEST_CASE("a device task waits for its issue, and lanes overlap") {
  ProgramBuilder builder;
  for (const int device : {30, 2, 5}) {
    const auto issued = builder.add(issue(10));
    builder.edge(issued, builder.add(work(Lane::compute, device)));
  }
  const EngineResult result = run(graph_of({builder.build()}), recorded());
  // Host: 0-10, 10-20, 20-30. Device: 10-40, 40-42, 42-47: device-bound after the first.
  CHECK(spans(result) == Spans{{0, 10}, {10, 20}, {20, 30}, {10, 40}, {40, 42}, {42, 47}});
  CHECK(result.step_end == std::vector<std::vector<Time>>{{us(47)}});
  CHECK(result.completed_tasks == 6);
}

TEST_CASE("a ready task never overtakes a blocked head") {
  ProgramBuilder builder;
  const auto load = builder.add(work(Lane::loader, 50));
  const auto head = builder.add(work(Lane::compute, 1));
  builder.add(work(Lane::compute, 2));  // ready from the start, behind the head
  builder.edge(load, head);
  const EngineResult result = run(graph_of({builder.build()}), recorded());
  // compute 50-51, 51-53; loader 0-50.
  CHECK(spans(result) == Spans{{50, 51}, {51, 53}, {0, 50}});
}

TEST_CASE("iterations carry lane state over") {
  ProgramBuilder builder;
  const auto issued = builder.add(issue(10));
  builder.edge(issued, builder.add(work(Lane::compute, 4)));
  SECTION("the host runs ahead where nothing synchronises") {
    const EngineResult result = run(graph_of({builder.build()}), recorded(3));
    // Host 0-10, 10-20, 20-30; device 10-14, 20-24, 30-34.
    CHECK(result.step_end[0] == std::vector<Time>{us(14), us(24), us(34)});
  }
  SECTION("a mark in the host lane synchronises each step") {
    const auto device = builder.add(work(Lane::compute, 1));
    builder.edge(device, builder.add(mark(Lane::host)));
    const EngineResult result = run(graph_of({builder.build()}), recorded(3));
    // Host 0-10, device 10-15, the host goes on at 15: 15 a step.
    CHECK(result.step_end[0] == std::vector<Time>{us(15), us(30), us(45)});
  }
}

TEST_CASE("the launch queue holds the host back") {
  ProgramBuilder builder;
  for (int i = 0; i < 4; ++i) {
    const auto issued = builder.add(issue(1));
    builder.edge(issued, builder.add(work(Lane::compute, 10)));
  }
  TaskGraph graph = graph_of({builder.build()});
  graph.launch_queue = 2;
  // Host 0-1, 1-2, then full: the first kernel ends at 11, the second at 21, so 11-12 and 21-22.
  // Device 1-11, 11-21, 21-31, 31-41.
  CHECK(spans(run(graph, recorded())) ==
        Spans{{0, 1}, {1, 2}, {11, 12}, {21, 22}, {1, 11}, {11, 21}, {21, 31}, {31, 41}});
}

TEST_CASE("more kernels than the launch queue is deep go when it is empty") {
  ProgramBuilder builder;
  for (int i = 0; i < 2; ++i) {
    const auto issued = builder.add(issue(1, 5));
    builder.edge(issued, builder.add(work(Lane::compute, 10)));
  }
  TaskGraph graph = graph_of({builder.build()});
  graph.launch_queue = 2;
  // Host 0-1, device 1-11, host 11-12, device 12-22.
  CHECK(spans(run(graph, recorded())) == Spans{{0, 1}, {11, 12}, {1, 11}, {12, 22}});
}

TEST_CASE("lanes run at most a window of iterations ahead") {
  ProgramBuilder builder;
  builder.add(work(Lane::loader, 1));
  builder.add(work(Lane::compute, 10));
  const EngineResult result = run(graph_of({builder.build()}), recorded(6));
  // The loader enters iteration 4 when iteration 0 ends at 10, iteration 5 at 20.
  CHECK(result.tasks[2 * 3 + 1].start == us(3));
  CHECK(result.tasks[2 * 4 + 1].start == us(10));
  CHECK(result.tasks[2 * 5 + 1].start == us(20));
}

Program compute_then_reduce(int before, int after) {
  ProgramBuilder builder;
  const auto first = builder.add(work(Lane::compute, before));
  const auto reduce = builder.add(collective(0));
  const auto last = builder.add(work(Lane::compute, after));
  builder.edge(first, reduce);
  builder.edge(reduce, last);
  return builder.build();
}

TEST_CASE("a collective starts with its last rank and ends for all at once") {
  const TaskGraph graph =
      graph_of({compute_then_reduce(10, 1), compute_then_reduce(25, 2)}, {{.duration = us(7)}});
  const EngineResult result = run(graph, recorded(2));
  // Launched at 10 and 25, transfers 25-32; then 32-33 and 32-34.
  // Second iteration: first compute 33-43 and 34-59, transfers 59-66; 66-67 and 66-68.
  CHECK(result.collectives == std::vector<CollectiveSpan>{{0, 0, 0, us(10), us(25), us(32)},
                                                          {0, 0, 1, us(25), us(25), us(32)},
                                                          {0, 1, 0, us(43), us(59), us(66)},
                                                          {0, 1, 1, us(59), us(59), us(66)}});
  CHECK(result.step_end == std::vector<std::vector<Time>>{{us(33), us(67)}, {us(34), us(68)}});
}

TEST_CASE("collectives keep the order of their lane") {
  ProgramBuilder builder;
  const auto late = builder.add(work(Lane::compute, 20));
  const auto first = builder.add(collective(0));
  builder.add(collective(1));  // ready at once, behind the first
  builder.edge(late, first);
  const Program program = builder.build();
  const EngineResult result =
      run(graph_of({program, program}, {{.duration = us(3)}, {.duration = us(4)}}), recorded());
  // 20-23, then 23-27.
  CHECK(result.collectives[2].launch == us(23));
  CHECK(result.collectives[2].end == us(27));
}

TEST_CASE("compute slows while a collective of its worker waits, more while it transfers") {
  ProgramBuilder early;
  early.add(collective(0));
  early.add({.work = us(40), .interference = 1, .lane = Lane::compute});
  ProgramBuilder late;
  const auto first = late.add({.work = us(12), .interference = 1, .lane = Lane::compute});
  late.edge(first, late.add(collective(0)));
  TaskGraph graph = graph_of({early.build(), late.build()}, {{.duration = us(20)}});
  graph.interference.push_back({Factor::of(1.25), Factor::of(2)});
  const EngineResult result = run(graph, recorded());
  // Worker 1 computes 0-12, undisturbed: it has launched nothing. Worker 0 launches at 0 and waits
  // until 12: 12 us at 1.25 are 9.6 us of work, 30.4 are left. The transfer, 12-32, at 2: 10 us of
  // work, 20.4 are left. Then undisturbed: 32 + 20.4 = 52.4.
  CHECK(result.collectives[0].transfer_start == us(12));
  CHECK(result.collectives[0].end == us(32));
  CHECK(result.tasks[0].start == us(0));
  CHECK(result.tasks[0].end == Time::nanoseconds(52'400));
  CHECK(result.tasks[2].end == us(12));
}

TEST_CASE("work that begins in the instant of a launch is timed once") {
  // At 5 us the second task begins, the collective launches (1.5) and, having one rank, transfers
  // (3.3): 1 ps at 3.3 is 3 ps. Passing through 1.5 would give 2 ps, re-timed to 4.4 = 4 ps.
  ProgramBuilder builder;
  const auto first = builder.add(work(Lane::compute, 5));
  builder.edge(first, builder.add(collective(0)));
  builder.add({.work = Time::picoseconds(1), .interference = 1, .lane = Lane::compute});
  TaskGraph graph = graph_of({builder.build()}, {{.duration = us(1)}});
  graph.interference.push_back({Factor::of(1.5), Factor::of(3.3)});
  const EngineResult result = run(graph, recorded());
  CHECK((result.tasks[1].end - result.tasks[1].start) == Time::picoseconds(3));
}

TEST_CASE("a transfer slows while any participant computes") {
  ProgramBuilder builder;
  builder.add(collective(0));
  builder.add(work(Lane::compute, 10));
  ProgramBuilder idle;
  idle.add(collective(0));
  TaskGraph graph = graph_of({builder.build(), idle.build()}, {{.duration = us(20)}});
  graph.collective_beside_compute = Factor::of(2);
  const EngineResult result = run(graph, recorded());
  // 0-10 at 2: 5 us of 20; 15 are left: ends at 25.
  CHECK(result.collectives[1].end == us(25));
  // This one more than the others: 0-10 at 5, 18 are left.
  graph.collectives[0].beside_compute = Factor::of(2.5);
  CHECK(run(graph, recorded()).collectives[1].end == us(28));
}

TEST_CASE("a transfer that waits for its cores slows compute in a part of its time") {
  ProgramBuilder builder;
  builder.add(collective(0));
  builder.add({.work = us(10), .interference = 1, .lane = Lane::compute});
  TaskGraph graph = graph_of({builder.build()}, {{.duration = us(100)}});
  graph.interference.push_back({.waiting = {}, .transferring = Factor::of(2)});
  CHECK(run(graph, recorded()).tasks[0].end == us(20));
  graph.collectives[0].working = Factor::of(0.5);
  CHECK(run(graph, recorded()).tasks[0].end == us(15));
}

TEST_CASE("a straggler's work takes longer, on the lanes that are slow") {
  ProgramBuilder builder;
  const auto issued = builder.add(issue(10));
  const auto device = builder.add(work(Lane::compute, 20));
  const auto copied = builder.add(work(Lane::copy, 4));
  const auto reduce = builder.add(collective(0));
  builder.edge(issued, device);
  builder.edge(device, copied);
  builder.edge(copied, reduce);
  const Program program = builder.build();
  const TaskGraph graph = graph_of({program, program}, {{.duration = us(5)}});
  EngineOptions options = recorded();
  options.slowdowns = {{}, {Factor::of(1.5), Factor::of(2)}};
  const EngineResult result = run(graph, options);
  // Worker 0: 10 + 20 + 4 = 34. Worker 1: 15 + 40 + 8 = 63. The collective, 63-68, is not slowed.
  CHECK(result.collectives[0].launch == us(34));
  CHECK(result.collectives[1].launch == us(63));
  CHECK(result.step_end == std::vector<std::vector<Time>>{{us(68)}, {us(68)}});
}

TEST_CASE("noise: one factor per run, per step and per task") {
  ProgramBuilder builder;
  builder.add(work(Lane::compute, 100));
  builder.add(work(Lane::compute, 100));
  const TaskGraph graph = graph_of({builder.build()});
  EngineOptions options = recorded(2);
  const auto lengths = [&] {
    std::vector<Time> each;
    for (const TaskSpan& span : run(graph, options).tasks) each.push_back(span.end - span.start);
    return each;
  };
  SECTION("process: the same all along") {
    options.noise.process = 0.1;
    const std::vector<Time> l = lengths();
    CHECK(l[0] != us(100));
    CHECK(l == std::vector<Time>(4, l[0]));
  }
  SECTION("step: the same within an iteration") {
    options.noise.step = 0.1;
    const std::vector<Time> l = lengths();
    CHECK(l[0] == l[1]);
    CHECK(l[2] == l[3]);
    CHECK(l[0] != l[2]);
  }
  SECTION("task: each its own") {
    options.noise.task = 0.1;
    const std::vector<Time> l = lengths();
    CHECK(l[0] != l[1]);
    CHECK(l[0] != l[2]);
  }
  SECTION("another seed, another draw") {
    options.noise.process = 0.1;
    const std::vector<Time> before = lengths();
    options.seed = 2;
    CHECK(lengths() != before);
  }
}

TEST_CASE("a deadlock names the tasks that wait") {
  ProgramBuilder one, other;
  one.add(collective(0));
  one.add(collective(1));
  other.add(collective(1));
  other.add(collective(0));
  TaskGraph graph = graph_of({one.build(), other.build()}, {{}, {}});
  graph.programs[0].tasks[0].name = 0;
  graph.names = {"bucket 0"};
  CHECK_THROWS_AS(run(graph, {}), InputError);
  CHECK_THROWS_WITH(run(graph, {}),
                    Contains("deadlock at 0 ps") &&
                        Contains("worker 0 iteration 0: collective task \"bucket 0\"") &&
                        Contains("waits for its peers") && Contains("worker 1 iteration 0"));
}

TEST_CASE("options that do not fit the graph are refused") {
  ProgramBuilder builder;
  builder.add(collective(0));
  TaskGraph graph = graph_of({builder.build()}, {{}});
  EngineOptions options;
  SECTION("iterations") {
    options.iterations = 0;
    CHECK_THROWS_WITH(run(graph, options), Contains("no iterations"));
  }
  SECTION("slow-downs") {
    options.slowdowns.resize(2);
    CHECK_THROWS_WITH(run(graph, options), Contains("2 slow-downs for 1 workers"));
  }
  SECTION("noise") {
    options.noise.step = -1;
    CHECK_THROWS_WITH(run(graph, options), Contains("noise"));
  }
  SECTION("no network") {
    graph.collectives[0].expanded = true;
    CHECK_THROWS_WITH(run(graph, options), Contains("without a network"));
  }
  SECTION("time without end") {
    graph.collectives[0].duration = Time::picoseconds(std::numeric_limits<std::int64_t>::max());
    options.iterations = 2;
    CHECK_THROWS_WITH(run(graph, options), Contains("53 days"));
  }
}

}  // namespace
}  // namespace lockstep
