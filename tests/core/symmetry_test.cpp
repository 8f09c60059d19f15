#include "sim/core/symmetry.h"

#include "sim/platform/network.h"
#include "tests/catch.h"
#include "tests/core/random_graph.h"

namespace lockstep {
namespace {

using testing::random_graph;

/// Compares every worker of the full run with the representative of its class.
void require_equal(const TaskGraph& graph, const EngineOptions& options,
                   std::size_t expected_classes) {
  const ReducedRun reduced = reduce_symmetric(graph, options);
  REQUIRE(reduced.graph.program_of_worker.size() == expected_classes);
  const EngineResult full = run(graph, options);
  const EngineResult part = run(reduced.graph, reduced.options);
  const std::size_t workers = graph.program_of_worker.size();
  for (std::size_t w = 0; w < workers; ++w) {
    REQUIRE(full.step_end[w] == part.step_end[reduced.class_of_worker[w]]);
  }
  for (std::size_t i = 0; i < full.collectives.size(); ++i) {
    const CollectiveSpan& whole = full.collectives[i];
    const CollectiveSpan& one =
        part.collectives[i / workers * expected_classes + reduced.class_of_worker[i % workers]];
    REQUIRE(whole.launch == one.launch);
    REQUIRE(whole.transfer_start == one.transfer_start);
    REQUIRE(whole.end == one.end);
  }
}

TEST_CASE("one worker stands for all that are alike, to the picosecond") {
  for (unsigned seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    TaskGraph graph = random_graph(seed, {.rates = true, .launch_queue = seed % 2 == 0}).graph;
    graph.program_of_worker.assign(8, 0);
    EngineOptions options;
    options.iterations = 6;
    require_equal(graph, options, 1);
    // A straggler, and two workers slower on the host, are classes of their own.
    options.slowdowns.resize(8);
    options.slowdowns[3].device = Factor::of(1.5);
    options.slowdowns[4].host = options.slowdowns[5].host = Factor::of(1.2);
    require_equal(graph, options, 3);
  }
}

TEST_CASE("workers with noise of their own are not alike") {
  TaskGraph graph = random_graph(1).graph;
  graph.program_of_worker.assign(4, 0);
  EngineOptions options;
  options.noise.step = 0.1;
  require_equal(graph, options, 4);
}

TEST_CASE("what is drawn alike for all tells nobody apart, what each draws does") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    TaskGraph graph = random_graph(seed, {.rates = true}).graph;
    graph.program_of_worker.assign(6, 0);
    EngineOptions options;
    options.iterations = 6;
    options.drawn = {
        {{.variability = {.kind = Variability::Kind::periodic, .every = 2, .high = 3}}}};
    options.slowdowns.assign(6, {.drawn = 1});
    require_equal(graph, options, 1);
    options.slowdowns[2].drawn = 0;
    require_equal(graph, options, 2);
    options.drawn[0][0].variability.aligned = false;
    require_equal(graph, options, 6);
    options.drawn[0][0].variability = {.kind = Variability::Kind::log_normal, .sigma = 0.2};
    require_equal(graph, options, 6);
  }
}

TEST_CASE("a ring step by step is reduced where ranks, chunks and hops are alike") {
  TaskGraph graph = random_graph(2).graph;
  graph.program_of_worker.assign(6, 0);
  const Network network(plain_network({.workers = 6,
                                       .device_bandwidth = {7'000'000'000},
                                       .device_latency = Time::nanoseconds(100),
                                       .host_bandwidth = {3'000'000'000},
                                       .host_latency = Time::nanoseconds(500)}));
  for (Collective& collective : graph.collectives) {
    collective.expanded = true;
    collective.bytes = Bytes{6 * 4 * 1001};
    collective.step = {.latency = Time::nanoseconds(70), .reduction = {9'000'000'000}};
  }
  EngineOptions options;
  options.iterations = 6;
  options.network = &network;
  SECTION("all alike") {
    require_equal(graph, options, 1);
  }
  SECTION("an element too many in some chunks") {
    graph.collectives[1].bytes += Bytes{4};
    require_equal(graph, options, 6);
  }
  SECTION("a slow worker") {
    options.slowdowns.resize(6);
    options.slowdowns[2].device = Factor::of(2);
    require_equal(graph, options, 6);
  }
  SECTION("two devices a host, so that hops differ") {
    const Network uneven(plain_network({.workers = 6,
                                        .devices_per_host = 2,
                                        .device_bandwidth = {7'000'000'000},
                                        .host_bandwidth = {3'000'000'000}}));
    options.network = &uneven;
    require_equal(graph, options, 6);
  }
}

}  // namespace
}  // namespace lockstep
