// Algorithms beside the ring of numbers: who sends what, and what that takes over links.
#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "sim/collectives/algorithms.h"
#include "sim/collectives/costs.h"
#include "sim/collectives/steps.h"
#include "sim/core/engine.h"
#include "sim/platform/network.h"
#include "tests/catch.h"

namespace lockstep {
namespace {

constexpr Bandwidth kCable{1'000'000'000};  // a byte in a nanosecond
constexpr Algorithm kAlgorithms[] = {Algorithm::ring,
                                     Algorithm::gloo_ring,
                                     Algorithm::recursive_doubling,
                                     Algorithm::halving_doubling,
                                     Algorithm::tree,
                                     Algorithm::linear,
                                     Algorithm::chain,
                                     Algorithm::recursive_halving,
                                     Algorithm::pairwise,
                                     Algorithm::hierarchical,
                                     Algorithm::double_tree};
constexpr CollectiveKind kKinds[] = {CollectiveKind::all_reduce,     CollectiveKind::broadcast,
                                     CollectiveKind::gather,         CollectiveKind::scatter,
                                     CollectiveKind::reduce,         CollectiveKind::all_gather,
                                     CollectiveKind::reduce_scatter, CollectiveKind::all_to_all};

Collective collective_of(CollectiveKind kind, Algorithm algorithm, std::int64_t bytes) {
  Collective collective{.kind = kind, .bytes = Bytes{bytes}};
  collective.algorithm = algorithm;
  collective.expanded = true;
  return collective;
}

/// Workers that do nothing but this collective.
TaskGraph only(const Collective& collective, std::uint32_t workers) {
  ProgramBuilder builder;
  builder.add({.collective = 0, .kind = TaskKind::collective, .lane = Lane::communication});
  TaskGraph graph;
  graph.programs = {builder.build()};
  graph.program_of_worker.assign(workers, 0);
  graph.collectives = {collective};
  return graph;
}

/// One device a host behind a cable of its own; a hop takes 2 us besides.
PlainNetwork one_switch(std::uint32_t workers) {
  return {.workers = workers,
          .device_bandwidth = {90'000'000'000},
          .host_bandwidth = kCable,
          .host_latency = Time::microseconds(1)};
}

std::vector<Time> ends(const PlainNetwork& plain, const Collective& collective) {
  const Network network(plain_network(plain));
  EngineOptions options;
  options.network = &network;
  std::vector<Time> times;
  for (const auto& steps : run(only(collective, plain.workers), options).step_end) {
    times.push_back(steps.back());
  }
  return times;
}

Time last_end(const Collective& collective, std::uint32_t workers) {
  return std::ranges::max(ends(one_switch(workers), collective));
}

/// The same by formula, the network's part in the message.
Time formula(Collective collective, std::uint32_t workers) {
  collective.step.latency += Time::microseconds(2);
  collective.step.rate = kCable;
  return formula_time(collective, workers);
}

TEST_CASE("every message that is sent is received, and nothing else") {
  for (const CollectiveKind kind : kKinds) {
    for (const Algorithm algorithm : kAlgorithms) {
      if (!can_run(kind, algorithm)) continue;
      for (std::uint32_t n = 1; n <= 17; ++n) {
        CAPTURE(to_string(kind), static_cast<int>(algorithm), n);
        const StepPlan plan(collective_of(kind, algorithm, 4 * 101), n);
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Bytes>> sent, received;
        std::vector<Message> messages;
        for (std::uint32_t s = 0; s < plan.steps(); ++s) {
          for (std::uint32_t rank = 0; rank < n; ++rank) {
            messages.clear();
            plan.sends(rank, s, messages);
            for (const Message& m : messages) sent[{rank, m.peer}].push_back(m.bytes);
            messages.clear();
            plan.receives(rank, s, messages);
            for (const Message& m : messages) received[{m.peer, rank}].push_back(m.bytes);
          }
        }
        CHECK(sent == received);
        CHECK(sent.empty() == (n == 1));
      }
    }
  }
}

std::int64_t moved(const Collective& collective, std::uint32_t ranks) {
  const StepPlan plan(collective, ranks);
  std::vector<Message> messages;
  for (std::uint32_t s = 0; s < plan.steps(); ++s) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) plan.sends(rank, s, messages);
  }
  std::int64_t bytes = 0;
  for (const Message& message : messages) bytes += message.bytes.count;
  return bytes;
}

TEST_CASE("bytes that move are the algorithm's") {
  const std::int64_t whole = 4 * 8 * 30;
  const auto all_reduce = [&](Algorithm algorithm, std::uint32_t n) {
    return moved(collective_of(CollectiveKind::all_reduce, algorithm, whole), n);
  };
  // Rings and halving-doubling: 2 (n-1)/n of the array a rank; doubling: log2(n) times.
  CHECK(all_reduce(Algorithm::ring, 8) == 14 * whole);
  CHECK(all_reduce(Algorithm::gloo_ring, 8) == 14 * whole);
  CHECK(all_reduce(Algorithm::gloo_ring, 7) == 12 * whole);
  CHECK(all_reduce(Algorithm::halving_doubling, 8) == 14 * whole);
  CHECK(all_reduce(Algorithm::recursive_doubling, 8) == 3 * 8 * whole);
  // Six ranks: two pairs fold and unfold (4 arrays), four ranks go on: 2 * 3, or 2 * 4 arrays.
  CHECK(all_reduce(Algorithm::halving_doubling, 6) == (4 + 6) * whole);
  CHECK(all_reduce(Algorithm::recursive_doubling, 6) == (4 + 8) * whole);
  // A tree: every rank but the root sends up once and receives once.
  for (std::uint32_t n = 2; n < 10; ++n)
    CHECK(all_reduce(Algorithm::tree, n) == 2 * (n - 1) * whole);
  CHECK(moved(collective_of(CollectiveKind::gather, Algorithm::linear, whole), 5) == 4 * whole);
}

TEST_CASE("the formulas by hand") {
  // 4 ranks, 8000 bytes, 2 us a hop, 1 B/ns, added at 2 B/ns.
  const auto time = [](Algorithm algorithm, std::uint32_t n) {
    Collective collective = collective_of(CollectiveKind::all_reduce, algorithm, 8000);
    collective.step.reduction = {2'000'000'000};
    return formula(collective, n);
  };
  const auto ns = [](std::int64_t count) { return Time::nanoseconds(count); };
  // Twice (2000 + 8000 + 4000).
  CHECK(time(Algorithm::recursive_doubling, 4) == ns(28'000));
  // Halves of 4000, 2000 and back: 4 * 2000 + 2 * 6000 + (2000 + 1000) of adding.
  CHECK(time(Algorithm::halving_doubling, 4) == ns(8'000 + 12'000 + 3'000));
  // Five ranks: three levels up of 14000, three down of 10000.
  CHECK(time(Algorithm::tree, 5) == ns(3 * 14'000 + 3 * 10'000));
  // Five ranks fold: 14000 before, 10000 after.
  CHECK(time(Algorithm::recursive_doubling, 5) == ns(28'000 + 24'000));
  // Gather: 2000 + 3 * 8000.
  CHECK(formula(collective_of(CollectiveKind::gather, Algorithm::linear, 8000), 4) == ns(26'000));
  // Gloo's ring, two ranks: two segments of 2000 each way. Adding up: they arrive at 4000 and 6000,
  // are added by 5000 and 7000. Back: at 7000 + 4000 and 13000.
  CHECK(time(Algorithm::gloo_ring, 2) == ns(13'000));
}

TEST_CASE("step by step equals the formula, to the picosecond") {
  std::mt19937 random(4);
  for (int trial = 0; trial < 200; ++trial) {
    const Algorithm algorithm = kAlgorithms[2 + random() % 3];
    const auto n = static_cast<std::uint32_t>(2 + random() % 11);
    Collective collective = collective_of(CollectiveKind::all_reduce, algorithm,
                                          static_cast<std::int64_t>(1 + random() % 3'000'000));
    collective.step.latency = Time::nanoseconds(static_cast<std::int64_t>(random() % 9000));
    if (random() % 2 == 0) collective.step.reduction = {7'000'000'001};
    CAPTURE(static_cast<int>(algorithm), n, collective.bytes.count);
    REQUIRE(last_end(collective, n) == formula(collective, n));
  }
}

TEST_CASE("Gloo's ring step by step equals its recurrence, to the picosecond") {
  std::mt19937 random(5);
  for (int trial = 0; trial < 100; ++trial) {
    const auto n = static_cast<std::uint32_t>(2 + random() % 7);
    // Whole segments, two a chunk or more.
    const std::int64_t elements = static_cast<std::int64_t>(1 + random() % 200'000);
    Collective collective =
        collective_of(CollectiveKind::all_reduce, Algorithm::gloo_ring, 4 * elements * 2 * n);
    collective.step.latency = Time::nanoseconds(static_cast<std::int64_t>(random() % 900'000));
    if (random() % 2 == 0) collective.step.reduction = {900'000'001};
    CAPTURE(n, collective.bytes.count);
    REQUIRE(last_end(collective, n) == formula(collective, n));
  }
}

TEST_CASE("Gloo's ring keeps a link busy where a ring waits for each message") {
  // Two ranks, 4 MB, hops of 2 us, added at 1 B/ns. The ring: two messages of 2 MB with 2 us each,
  // and 2 ms of adding between them: 6004 us. In segments of 1 MB (two a chunk) the second flows
  // while the first is added: 2 + 1000 + 1000, the last added by 3002; back 2 + 2000: 5004 us.
  Collective collective = collective_of(CollectiveKind::all_reduce, Algorithm::ring, 4'000'000);
  collective.step.reduction = kCable;
  CHECK(last_end(collective, 2) == Time::microseconds(6004));
  collective.algorithm = Algorithm::gloo_ring;
  CHECK(last_end(collective, 2) == Time::microseconds(5004));
}

TEST_CASE("three senders into one host share its link") {
  const Collective gather = collective_of(CollectiveKind::gather, Algorithm::linear, 1'000'000);
  // Each at a third of 1 GB/s: 2 us + 3 ms, and all end at once.
  CHECK(ends(one_switch(4), gather) == std::vector<Time>(4, Time::microseconds(3002)));
  const Collective scatter = collective_of(CollectiveKind::scatter, Algorithm::linear, 1'000'000);
  CHECK(ends(one_switch(4), scatter) == std::vector<Time>(4, Time::microseconds(3002)));
}

TEST_CASE("who has sent leaves a gather early, whatever the root waits for") {
  // Host 3 sends at 100 MB/s: 9 ms for its 0.9 MB. Hosts 1 and 2 share what it leaves of the
  // root's 1 GB/s, 450 MB/s each: 2 ms.
  PlainNetwork plain = one_switch(4);
  plain.slow_hosts = {{3, {100'000'000}}};
  const std::vector<Time> end =
      ends(plain, collective_of(CollectiveKind::gather, Algorithm::linear, 900'000));
  CHECK(end[1] == Time::microseconds(2002));
  CHECK(end[2] == Time::microseconds(2002));
  CHECK(end[3] == Time::microseconds(9002));
  CHECK(end[0] == Time::microseconds(9002));
}

TEST_CASE("one slow link slows a ring to its pace") {
  // 3 ranks, 3 MB: chunks of 1 MB, 4 steps. Every step waits for the messages over host 2's cable
  // of 100 MB/s: 10 ms and 2 us.
  PlainNetwork plain = one_switch(3);
  plain.slow_hosts = {{2, {100'000'000}}};
  const std::vector<Time> end =
      ends(plain, collective_of(CollectiveKind::all_reduce, Algorithm::ring, 3'000'000));
  CHECK(std::ranges::max(end) == Time::microseconds(4 * 10'002));
}

}  // namespace
}  // namespace lockstep
