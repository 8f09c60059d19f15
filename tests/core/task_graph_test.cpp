#include "sim/core/task_graph.h"

#include "sim/core/error.h"
#include "tests/catch.h"

namespace lockstep {
namespace {

Task task(Lane lane, int us = 1) {
  return {.work = Time::microseconds(us), .lane = lane};
}

TEST_CASE("a program groups tasks by lane and keeps their order within it") {
  ProgramBuilder builder;
  const auto a = builder.add(task(Lane::compute, 1));
  const auto b = builder.add(task(Lane::host, 2));
  const auto c = builder.add(task(Lane::compute, 3));
  const auto d = builder.add(task(Lane::copy, 4));
  builder.edge(b, c);
  builder.edge(a, d);
  builder.edge(b, d);
  builder.edge(b, d);  // twice is once
  const Program program = builder.build();
  // host: b = 0; compute: a = 1, c = 2; copy: d = 3.
  CHECK(program.lane_begin == std::array<std::uint32_t, kLanes + 1>{0, 1, 3, 3, 4, 4});
  CHECK(program.tasks[0].work == Time::microseconds(2));
  CHECK(program.tasks[2].work == Time::microseconds(3));
  CHECK(program.first_successor == std::vector<std::uint32_t>{0, 2, 3, 3, 3});
  CHECK(program.successors == std::vector<std::uint32_t>{2, 3, 3});
  CHECK(program.dependency_count == std::vector<std::uint32_t>{0, 0, 1, 2});
}

TEST_CASE("a cycle is refused") {
  ProgramBuilder builder;
  const auto a = builder.add(task(Lane::compute));
  const auto b = builder.add(task(Lane::copy));
  builder.edge(a, b);
  SECTION("of edges") {
    builder.edge(b, a);
  }
  SECTION("of an edge against the order of a lane") {
    const auto before = builder.add(task(Lane::host));
    const auto after = builder.add(task(Lane::host));
    builder.edge(after, before);
  }
  CHECK_THROWS_AS(builder.build(), InputError);
  CHECK_THROWS_WITH(builder.build(), Contains("can never start") && Contains("form a cycle"));
}

TEST_CASE("a graph whose parts do not fit is refused") {
  ProgramBuilder builder;
  builder.add({.collective = 0, .kind = TaskKind::collective, .lane = Lane::communication});
  TaskGraph graph;
  graph.programs = {builder.build()};
  graph.program_of_worker = {0, 0};
  graph.collectives = {{.duration = Time::microseconds(1)}};
  REQUIRE_NOTHROW(validate(graph));

  SECTION("no workers") {
    graph.program_of_worker.clear();
    CHECK_THROWS_WITH(validate(graph), Contains("no workers"));
  }
  SECTION("no such program") {
    graph.program_of_worker = {1};
    CHECK_THROWS_WITH(validate(graph), Contains("program is not there"));
  }
  SECTION("an empty program") {
    graph.collectives.clear();
    graph.programs = {ProgramBuilder().build()};
    CHECK_THROWS_WITH(validate(graph), Contains("without tasks"));
  }
  SECTION("a collective nobody holds") {
    graph.collectives.push_back({});
    CHECK_THROWS_WITH(validate(graph), Contains("collective 1 is held 0 times"));
  }
  SECTION("a collective out of range") {
    graph.collectives.clear();
    CHECK_THROWS_WITH(validate(graph), Contains("collective that is not there"));
  }
  SECTION("a collective on another lane") {
    ProgramBuilder other;
    other.add({.collective = 0, .lane = Lane::compute});
    graph.programs = {other.build()};
    CHECK_THROWS_WITH(validate(graph), Contains("communication lane"));
  }
  SECTION("work below zero") {
    graph.programs[0].tasks[0].work = Time::picoseconds(-1);
    CHECK_THROWS_WITH(validate(graph), Contains("work below zero"));
  }
  SECTION("launches that nothing works off") {
    ProgramBuilder other;
    other.add({.collective = 0, .lane = Lane::communication});
    other.add({.launches = 1, .kind = TaskKind::issue, .lane = Lane::host});
    graph.programs = {other.build()};
    CHECK_THROWS_WITH(validate(graph), Contains("issue task") && Contains("no task works off"));
  }
  SECTION("a factor of zero") {
    graph.collective_beside_compute = Factor::of(0);
    CHECK_THROWS_WITH(validate(graph), Contains("slow-down of zero"));
  }
  SECTION("a negative duration") {
    graph.collectives[0].duration = Time::picoseconds(-1);
    CHECK_THROWS_WITH(validate(graph), Contains("below zero"));
  }
}

}  // namespace
}  // namespace lockstep
