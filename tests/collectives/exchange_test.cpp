// Collectives step by step, as the engine runs them over links.
#include "sim/collectives/exchange.h"

#include <algorithm>
#include <random>
#include <vector>

#include "sim/collectives/costs.h"
#include "sim/core/engine.h"
#include "tests/catch.h"

namespace lockstep {
namespace {

constexpr Bandwidth kCable{3'000'000'007};

/// Workers that do nothing but the given collectives, expanded.
TaskGraph only_collectives(std::uint32_t workers, std::vector<Collective> collectives) {
  ProgramBuilder builder;
  for (std::size_t c = 0; c < collectives.size(); ++c) {
    collectives[c].expanded = true;
    builder.add({.collective = static_cast<std::int32_t>(c),
                 .kind = TaskKind::collective,
                 .lane = Lane::communication});
  }
  TaskGraph graph;
  graph.programs = {builder.build()};
  graph.program_of_worker.assign(workers, 0);
  graph.collectives = std::move(collectives);
  return graph;
}

/// One device a host; every hop crosses two cables of `bandwidth`, 2 us in all.
Network one_switch(std::uint32_t workers, Bandwidth bandwidth) {
  return Network(plain_network({.workers = workers,
                                .device_bandwidth = {90'000'000'000},
                                .host_bandwidth = bandwidth,
                                .host_latency = Time::microseconds(1)}));
}

Time last_end(const EngineResult& result) {
  Time last;
  for (const auto& steps : result.step_end) last = std::max(last, steps.back());
  return last;
}

Time run_on(const Network& network, const TaskGraph& graph, std::uint32_t iterations = 1) {
  EngineOptions options;
  options.iterations = iterations;
  options.network = &network;
  return last_end(run(graph, options));
}

TEST_CASE("ring all-reduce step by step equals the formula, to the picosecond") {
  std::mt19937 random(1);
  for (int trial = 0; trial < 120; ++trial) {
    const auto n = static_cast<std::uint32_t>(2 + random() % 9);
    Collective collective{.bytes = Bytes{static_cast<std::int64_t>(random() % 5'000'000)}};
    collective.step.latency = Time::nanoseconds(static_cast<std::int64_t>(random() % 3000));
    if (random() % 2 == 0) collective.step.reduction = {7'000'000'001};
    if (random() % 3 == 0) collective.step.rate = {1'000'000'003};
    CAPTURE(n, collective.bytes.count);
    const Time simulated = run_on(one_switch(n, kCable), only_collectives(n, {collective}));

    Collective alone = collective;
    alone.step.latency += Time::microseconds(2);
    if (alone.step.rate == Bandwidth{}) alone.step.rate = kCable;
    REQUIRE(simulated == formula_time(alone, n));
  }
}

TEST_CASE("broadcast down the chain step by step equals the formula, to the picosecond") {
  std::mt19937 random(2);
  for (int trial = 0; trial < 120; ++trial) {
    const auto n = static_cast<std::uint32_t>(2 + random() % 7);
    Collective collective{.kind = CollectiveKind::broadcast,
                          .bytes = Bytes{static_cast<std::int64_t>(random() % 3'000'000)}};
    collective.step.segment = Bytes{static_cast<std::int64_t>(random() % 1'000'000)};
    collective.step.latency = Time::nanoseconds(static_cast<std::int64_t>(random() % 3000));
    CAPTURE(n, collective.bytes.count, collective.step.segment.count);
    const Time simulated = run_on(one_switch(n, kCable), only_collectives(n, {collective}));
    collective.step.latency += Time::microseconds(2);
    collective.step.rate = kCable;
    REQUIRE(simulated == formula_time(collective, n));
  }
}

TEST_CASE("the formula by hand") {
  // 3 ranks, 12 elements of 4 bytes: chunks of 16 bytes. 2 us latency, 16 B at 1 MB/s = 16 us,
  // reduction at 2 MB/s = 8 us. 4 messages of 18 us + 2 reductions of 8 us = 88 us.
  Collective collective{
      .bytes = Bytes{48},
      .step = {.latency = Time::microseconds(2), .rate = {1'000'000}, .reduction = {2'000'000}}};
  CHECK(formula_time(collective, 3) == Time::microseconds(88));
  // Broadcast, one piece: 2 hops of (2 + 48) us. In segments of 20: messages of 22, 22, 10 us; two
  // hops, so the first takes one hop ahead: 22 + 22 + 22 + 10 = 76 us.
  collective.kind = CollectiveKind::broadcast;
  CHECK(formula_time(collective, 3) == Time::microseconds(100));
  collective.step.segment = Bytes{20};
  CHECK(formula_time(collective, 3) == Time::microseconds(76));
  CHECK(formula_time(collective, 1) == Time());
}

TEST_CASE("hops that share a cable share its bandwidth") {
  // Two hosts of two devices. In ring order each cable carries one message each way. With ranks 0
  // and 2 on one host and 1 and 3 on the other, two hops leave each host by its cable.
  Platform platform = plain_network({.workers = 4,
                                     .devices_per_host = 2,
                                     .device_bandwidth = {100'000'000'000},
                                     .host_bandwidth = {1'000'000'000}});
  const TaskGraph graph = only_collectives(4, {{.bytes = Bytes{4'000'000}}});
  // A chunk of 1 MB at 1 GB/s takes 1 ms; 6 steps, each as slow as its slowest message.
  CHECK(run_on(Network(platform), graph) == Time::milliseconds(6));
  std::swap(platform.device_of_worker[1], platform.device_of_worker[2]);
  CHECK(run_on(Network(platform), graph) == Time::milliseconds(12));
}

TEST_CASE("a share that changes re-times what flows") {
  // Ranks 0 and 2 on host A, 1 and 3 on host B: hops 0 -> 1 and 2 -> 3 leave A by one cable of
  // 1 GB/s and enter B by another, the other two hops do the reverse.
  Platform platform = plain_network({.workers = 4,
                                     .devices_per_host = 2,
                                     .device_bandwidth = {1'000'000'000'000},
                                     .host_bandwidth = {1'000'000'000}});
  std::swap(platform.device_of_worker[1], platform.device_of_worker[2]);
  const Network network(platform);
  // Six elements of 1 MB: chunks of 2, 2, 1, 1 MB. Ranks r and r + 2 send chunks c and c + 2, so a
  // cable always carries 2 and 1 MB: at 0.5 GB/s each until 2 ms, when the smaller is through; of
  // the larger 1 MB is left at 1 GB/s: 3 ms. Chunks of 1 MB meet on one rank only, the one between
  // those that send them, so no two neighbours are early and every step lasts 3 ms: 18 ms in all.
  // In the last step rank r sends chunk r - 1: rank 0 sends chunk 3 and receives chunk 2, 1 MB
  // each, and is through at 17 ms.
  const TaskGraph graph =
      only_collectives(4, {{.bytes = Bytes{6'000'000}, .step = {.element = Bytes{1'000'000}}}});
  EngineOptions options;
  options.network = &network;
  const EngineResult result = run(graph, options);
  CHECK(result.step_end[0][0] == Time::milliseconds(17));
  for (std::size_t rank = 1; rank < 4; ++rank) {
    CHECK(result.step_end[rank][0] == Time::milliseconds(18));
  }
}

TEST_CASE("more bandwidth is never slower") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 20; ++trial) {
    const auto n = static_cast<std::uint32_t>(2 + random() % 6);
    const TaskGraph graph =
        only_collectives(n, {{.bytes = Bytes{static_cast<std::int64_t>(random() % 5'000'000)}},
                             {.kind = CollectiveKind::broadcast, .bytes = Bytes{300'000}}});
    Time before = Time::milliseconds(1'000'000);
    for (std::int64_t mb_per_second = 10; mb_per_second < 20'000; mb_per_second *= 2) {
      const Network network(plain_network({.workers = n,
                                           .device_bandwidth = {90'000'000'000},
                                           .host_bandwidth = {mb_per_second * 1'000'000}}));
      const Time time = run_on(network, graph, 2);
      REQUIRE(time <= before);
      before = time;
    }
  }
}

TEST_CASE("ranks go on one by one, and meet again in the next collective") {
  // Broadcast of 1 MB over 3 ranks at 1 GB/s, in one piece: 0 -> 1 until 1 ms, 1 -> 2 until 2 ms.
  // Rank 0 is through at 1 ms and waits in the second broadcast, which rank 1 joins at 2 ms: 3 and
  // 4 ms.
  const Collective broadcast{.kind = CollectiveKind::broadcast, .bytes = Bytes{1'000'000}};
  const TaskGraph graph = only_collectives(3, {broadcast, broadcast});
  const Network network(plain_network(
      {.workers = 3, .device_bandwidth = {90'000'000'000}, .host_bandwidth = {1'000'000'000}}));
  EngineOptions options;
  options.network = &network;
  const EngineResult result = run(graph, options);
  const auto ms = [](std::int64_t n) { return Time::milliseconds(n); };
  CHECK(result.collectives == std::vector<CollectiveSpan>{{0, 0, 0, ms(0), ms(0), ms(1)},
                                                          {0, 0, 1, ms(0), ms(0), ms(2)},
                                                          {0, 0, 2, ms(0), ms(1), ms(2)},
                                                          {1, 0, 0, ms(1), ms(2), ms(3)},
                                                          {1, 0, 1, ms(2), ms(2), ms(4)},
                                                          {1, 0, 2, ms(2), ms(3), ms(4)}});
}

TEST_CASE("messages slow while ranks compute") {
  ProgramBuilder builder;
  builder.add({.work = Time::milliseconds(1), .lane = Lane::compute});
  builder.add({.collective = 0, .kind = TaskKind::collective, .lane = Lane::communication});
  TaskGraph graph =
      only_collectives(2, {{.bytes = Bytes{4'000'000}, .step = {.rate = {1'000'000'000}}}});
  graph.programs = {builder.build()};
  graph.collective_beside_compute = Factor::of(2);
  const Network network(plain_network(
      {.workers = 2, .device_bandwidth = {90'000'000'000}, .host_bandwidth = {2'000'000'000}}));
  // Two steps of 2 MB at what a rank handles, 2 ms each. In the first ms at half the rate: 0.5
  // MB; 1.5 ms for the rest, then 2 ms: 4.5 ms.
  CHECK(run_on(network, graph) == Time::nanoseconds(4'500'000));
  // A slower link takes 2.5 ns a byte, and is fed late by what the ranks take longer, 1 ns a byte:
  // in the first ms 2/7 of a MB; 30/7 ms for the rest, then 5 ms: 10 2/7 ms.
  const Network slow(plain_network(
      {.workers = 2, .device_bandwidth = {90'000'000'000}, .host_bandwidth = {400'000'000}}));
  CHECK(run_on(slow, graph).seconds() == Approx(0.072 / 7).epsilon(1e-6));
}

TEST_CASE("iterations follow one another on every rank") {
  const TaskGraph graph =
      only_collectives(5, {{.bytes = Bytes{123'456}}, {.bytes = Bytes{400'000}}});
  Collective first = graph.collectives[0], second = graph.collectives[1];
  first.step.latency = second.step.latency = Time::microseconds(2);
  first.step.rate = second.step.rate = kCable;
  // Chunks of the first differ by an element, so its ranks end at different times, but none can
  // start the second before its neighbour: from then on the largest chunk's way decides.
  const Time one = formula_time(first, 5) + formula_time(second, 5);
  const Time three = run_on(one_switch(5, kCable), graph, 3);
  CHECK(three <= one * 3);
  CHECK(three > one * 3 - Time::microseconds(1));
}

}  // namespace
}  // namespace lockstep
