// Stragglers that are drawn, and backup workers. Comments give the schedule in microseconds.
#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/core/engine.h"
#include "sim/core/error.h"
#include "tests/catch.h"

namespace lockstep {
namespace {

using Kind = Variability::Kind;
using Ends = std::vector<Time>;

Time us(std::int64_t n) {
  return Time::microseconds(n);
}

Ends at(const std::vector<std::int64_t>& ends_us) {
  Ends ends;
  for (const std::int64_t end : ends_us) ends.push_back(us(end));
  return ends;
}

/// Computes, exchanges, and goes on with the next step when that is done.
Program computes_and_exchanges(int compute) {
  ProgramBuilder builder;
  const auto computed = builder.add({.work = us(compute), .lane = Lane::compute});
  const auto exchanged =
      builder.add({.collective = 0, .kind = TaskKind::collective, .lane = Lane::communication});
  const auto joined = builder.add({.kind = TaskKind::mark, .lane = Lane::compute});
  builder.edge(computed, exchanged);
  builder.edge(exchanged, joined);
  return builder.build();
}

TaskGraph graph_of(std::vector<Program> programs, Time exchange) {
  TaskGraph graph;
  graph.programs = std::move(programs);
  if (exchange > Time{}) graph.collectives = {{.duration = exchange}};
  for (std::uint32_t w = 0; w < graph.programs.size(); ++w) graph.program_of_worker.push_back(w);
  return graph;
}

/// One worker that pauses as drawn and then computes for 100.
TaskGraph pausing(const Variability& variability, Lane lane = Lane::compute) {
  ProgramBuilder builder;
  const auto paused = builder.add({.lane = lane, .drawn = 1});
  const auto computed = builder.add({.work = us(100), .lane = Lane::compute});
  builder.edge(paused, computed);
  TaskGraph graph = graph_of({builder.build()}, {});
  graph.delays = {{.time = us(50), .variability = variability}};
  return graph;
}

TEST_CASE("a pause every three steps") {
  // Steps 2 and 5 begin with 50.
  const TaskGraph graph = pausing({.kind = Kind::periodic, .every = 3, .high = 1, .low = 0});
  CHECK(run(graph, {.iterations = 6}).step_end[0] == at({100, 200, 350, 450, 550, 700}));
}

TEST_CASE("a pause each 250 us of the clock is taken where the worker next gets to it") {
  // Due at 250, met at 300: until 350. Due at 500, met at 550. Due at 750, met at 800.
  const TaskGraph graph = pausing({.kind = Kind::periodic, .period = us(250)});
  CHECK(run(graph, {.iterations = 8}).step_end[0] == at({100, 200, 300, 450, 550, 700, 800, 950}));
}

TEST_CASE("no slow-down stretches a drawn delay") {
  const TaskGraph graph = pausing({.kind = Kind::samples, .listed = true, .values = {1, 2}});
  EngineOptions options{.iterations = 3};
  options.slowdowns = {{.device = Factor::of(2)}};
  // 50 + 200, 100 + 200, 50 + 200.
  CHECK(run(graph, options).step_end[0] == at({250, 550, 800}));
}

TEST_CASE("a replayed list slows the worker it belongs to, on all its lanes") {
  ProgramBuilder builder;
  const auto issued = builder.add({.work = us(10), .kind = TaskKind::issue, .lane = Lane::host});
  const auto computed = builder.add({.work = us(100), .lane = Lane::compute});
  const auto waited = builder.add({.kind = TaskKind::mark, .lane = Lane::host});
  builder.edge(issued, computed);
  builder.edge(computed, waited);
  const Program program = builder.build();
  const TaskGraph graph = graph_of({program, program}, {});
  EngineOptions options{.iterations = 3};
  options.drawn = {{{.variability = {.kind = Kind::samples, .listed = true, .values = {1, 3}}}}};
  options.slowdowns = {{}, {.drawn = 1}};
  const EngineResult result = run(graph, options);
  CHECK(result.step_end[0] == at({110, 220, 330}));
  CHECK(result.step_end[1] == at({110, 440, 550}));
}

TEST_CASE("what a worker draws is its own, whoever else there is") {
  EngineOptions options{.iterations = 20};
  options.drawn = {{{.variability = {.kind = Kind::log_normal, .sigma = 0.4}, .stream = 2},
                    {.variability = {.kind = Kind::pareto, .shape = 2}, .stream = 3}}};
  ProgramBuilder builder;
  builder.add({.work = us(100), .lane = Lane::compute});
  const Program program = builder.build();
  const auto ends = [&](std::size_t workers) {
    options.slowdowns.assign(workers, {.drawn = 1});
    return run(graph_of(std::vector<Program>(workers, program), {}), options).step_end;
  };
  const auto several = ends(5);
  CHECK(ends(1)[0] == several[0]);
  CHECK(ends(3)[2] == several[2]);
  CHECK(several[0] != several[1]);
}

/// Of the largest of n log-normal variates of median one: the integral of 1 - F(x)^n from 0 on, in
/// steps of a thousandth (Simpson's rule over 0 to 20, beyond which nothing is left at sigma 0.3).
double expected_maximum(double sigma, int n) {
  constexpr int kSteps = 20'000;
  constexpr double kWidth = 20.0 / kSteps;
  const auto integrand = [&](int i) {
    if (i == 0) return 1.0;
    const double below = 0.5 * std::erfc(-std::log(i * kWidth) / (sigma * std::sqrt(2.0)));
    return 1 - std::pow(below, n);
  };
  double sum = integrand(0) + integrand(kSteps);
  for (int i = 1; i < kSteps; ++i) sum += (i % 2 == 1 ? 4 : 2) * integrand(i);
  return sum * kWidth / 3;
}

TEST_CASE("a step of n log-normal workers is as long as the largest of n draws") {
  CHECK(expected_maximum(0.3, 1) == Approx(std::exp(0.045)).epsilon(1e-6));
  constexpr int kSteps = 4000;
  double before = 1;
  for (const int n : {1, 2, 4, 8, 16}) {
    CAPTURE(n);
    const auto workers = static_cast<std::size_t>(n);
    EngineOptions options{.iterations = kSteps};
    options.drawn = {{{.variability = {.kind = Kind::log_normal, .sigma = 0.3}}}};
    options.slowdowns.assign(workers, {.drawn = 1});
    const TaskGraph graph =
        graph_of(std::vector<Program>(workers, computes_and_exchanges(1000)), us(10));
    const double step = run(graph, options).step_end[0].back().us() / kSteps;
    // The deviation of a maximum is at most 0.33: four standard errors of 4000 steps, 0.021.
    const double expected = expected_maximum(0.3, n);
    CHECK(std::abs((step - 10) / 1000 - expected) < 0.021);
    CHECK(expected > before);
    before = expected;
  }
}

/// Three workers that compute for 100, 110 and 100 and exchange for 15; the third takes 5.2 times
/// as long in its first step, then 0.7 times.
EngineOptions one_late(std::uint32_t iterations) {
  EngineOptions options{.iterations = iterations};
  options.drawn = {
      {{.variability = {
            .kind = Kind::samples, .listed = true, .values = {5.2, 0.7, 0.7, 0.7, 0.7, 0.7}}}}};
  options.slowdowns = {{}, {}, {.drawn = 1}};
  return options;
}

TEST_CASE("a step does not wait for its backup worker") {
  TaskGraph graph = graph_of(
      {computes_and_exchanges(100), computes_and_exchanges(110), computes_and_exchanges(100)},
      us(15));
  graph.backups = 1;
  const EngineResult result = run(graph, one_late(6));
  // Two gradients are there at 110, 235, 360, 485: the steps end at 125, 250, 375, 500. The third
  // worker comes at 520, goes on at once and leaves out steps 1 to 3. It is back in step 4 at 590,
  // worker 0 at 600: the exchange lasts from 600 to 615, and worker 1, who comes at 610, is late.
  // Step 5: 685 and 715, until 730.
  CHECK(result.step_end[0] == at({125, 250, 375, 500, 615, 730}));
  CHECK(result.step_end[1] == at({125, 250, 375, 500, 615, 730}));
  CHECK(result.step_end[2] == at({520, 520, 520, 520, 615, 730}));
  // Without, the first step takes 520 + 15, the others 110 + 15.
  graph.backups = 0;
  CHECK(run(graph, one_late(6)).step_end[0] == at({535, 660, 785, 910, 1035, 1160}));
}

TEST_CASE("backup workers that cannot be are refused") {
  TaskGraph graph = graph_of({computes_and_exchanges(100), computes_and_exchanges(110)}, us(15));
  graph.backups = 2;
  CHECK_THROWS_WITH(run(graph, {}), Contains("as many backup workers as workers"));
  graph.backups = 1;
  graph.collectives[0].expanded = true;
  CHECK_THROWS_WITH(run(graph, {}), Contains("step by step"));
}

TEST_CASE("graphs and options that refer to draws that are not there are refused") {
  TaskGraph graph = pausing({});
  graph.delays.clear();
  CHECK_THROWS_WITH(run(graph, {}), Contains("a delay that is not there"));
  EngineOptions options;
  options.slowdowns = {{.drawn = 1}};
  CHECK_THROWS_WITH(run(pausing({}), options), Contains("drawn that is not there"));
}

}  // namespace
}  // namespace lockstep
