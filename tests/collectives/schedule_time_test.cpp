// What schedules take over a network, in the engine, against the formulas.
#include <algorithm>
#include <bit>
#include <random>

#include "sim/analysis/collective_timing.h"
#include "sim/collectives/algorithms.h"
#include "sim/collectives/schedule.h"
#include "tests/catch.h"

namespace lockstep {
namespace {

Schedule timed(const Collective& collective, std::uint32_t ranks,
               const CollectivePlatform& platform) {
  Schedule schedule = schedule_of(collective, ranks);
  time_messages(schedule, platform);
  return schedule;
}

Time last_arrival(const Schedule& schedule) {
  Time last;
  for (const ScheduledMessage& message : schedule.messages) last = std::max(last, message.end);
  return last;
}

/// A byte in a nanosecond.
constexpr CollectivePlatform kPlain{.between_hosts = {1'000'000'000}, .in_host = std::nullopt};

TEST_CASE("the time of every schedule over equal links is the formula's, to the picosecond") {
  std::mt19937 random(6);
  for (const AlgorithmEntry& entry : algorithms()) {
    const bool bound = entry.algorithm == Algorithm::double_tree;
    const bool even = entry.algorithm == Algorithm::linear ||
                      entry.algorithm == Algorithm::hierarchical ||
                      entry.algorithm == Algorithm::gloo_ring;
    for (int trial = 0; trial < 25; ++trial) {
      const auto n = static_cast<std::uint32_t>(2 + random() % 16);
      // Where uneven chunks would share a link, or be early, a multiple of all parts of parts.
      const std::int64_t elements = even ? 144 * n * (1 + random() % 40) : 1 + random() % 500'000;
      Collective collective{.kind = entry.kind, .bytes = Bytes{4 * elements}};
      collective.algorithm = entry.algorithm;
      if (has_root(entry.kind)) collective.root = static_cast<std::uint32_t>(random() % n);
      collective.step.latency = Time::nanoseconds(static_cast<std::int64_t>(random() % 9000));
      if (random() % 2 == 0) collective.step.reduction = {7'000'000'001};
      const bool segments = entry.algorithm == Algorithm::chain || bound;
      if (segments && random() % 2 == 0) {
        collective.step.segment =
            Bytes{4 * (1 + elements / static_cast<std::int64_t>(1 + random() % 9))};
      }
      CAPTURE(to_string(entry.kind), to_string(entry.algorithm), n, elements, collective.root,
              collective.step.segment.count);
      const Schedule schedule = timed(collective, n, kPlain);
      const std::optional<Time> expected = expected_time(schedule, kPlain);
      REQUIRE(expected.has_value());
      if (bound) {
        REQUIRE(schedule.time <= *expected);
      } else {
        REQUIRE(schedule.time == *expected);
      }
    }
  }
}

TEST_CASE("hierarchical: ranks of a host share its cable, to the picosecond") {
  std::mt19937 random(7);
  for (int trial = 0; trial < 60; ++trial) {
    const auto g = static_cast<std::uint32_t>(1 + random() % 5);
    const auto h = static_cast<std::uint32_t>(1 + random() % 5);
    if (g * h == 1) continue;
    Collective collective{.bytes =
                              Bytes{4 * g * h * static_cast<std::int64_t>(1 + random() % 90'000)}};
    collective.algorithm = Algorithm::hierarchical;
    collective.per_host = g;
    collective.step.latency = Time::nanoseconds(static_cast<std::int64_t>(random() % 9000));
    if (random() % 2 == 0) collective.step.reduction = {7'000'000'001};
    const CollectivePlatform platform{.per_host = g,
                                      .between_hosts = {60 * 20'000'003},  // g divides it
                                      .in_host = Bandwidth{11'000'000'007}};
    CAPTURE(g, h, collective.bytes.count);
    const Schedule schedule = timed(collective, g * h, platform);
    REQUIRE(schedule.time == expected_time(schedule, platform));
  }
}

TEST_CASE("hierarchical by hand, and against a ring") {
  // Two hosts of two ranks, 4 MB, 1 GB/s between hosts and 10 GB/s in them, 10 us a message. In the
  // host a half: 10 + 200 us. Between, quarters of two ranks share the cable: 10 + 2000 us, twice.
  // Back: 210 us. 4440 us.
  Collective collective{.bytes = Bytes{4'000'000}};
  collective.step.latency = Time::microseconds(10);
  collective.algorithm = Algorithm::hierarchical;
  collective.per_host = 2;
  const CollectivePlatform platform{
      .per_host = 2, .between_hosts = {1'000'000'000}, .in_host = Bandwidth{10'000'000'000}};
  CHECK(timed(collective, 4, platform).time == Time::microseconds(4440));
  // The ring has six messages of a quarter, each as slow as the one between the hosts, which has
  // the cable to itself: 6 x (10 + 1000) us.
  collective.algorithm = Algorithm::ring;
  CHECK(timed(collective, 4, platform).time == Time::microseconds(6060));
  CHECK_FALSE(expected_time(timed(collective, 4, platform), platform).has_value());
}

TEST_CASE("messages by hand: when they start and end") {
  // A ring of three, 6 kB: messages of 2 kB take 1 + 2 us, adding 1 us; a rank sends on when it has
  // added. The last ones are only copied.
  Collective collective{.bytes = Bytes{6000}};
  collective.step.latency = Time::microseconds(1);
  collective.step.reduction = {2'000'000'000};
  const Schedule schedule = timed(collective, 3, kPlain);
  const auto us = [](std::int64_t n) { return Time::microseconds(n); };
  for (const ScheduledMessage& message : schedule.messages) {
    const std::int64_t start[] = {0, 4, 8, 11};
    CHECK(message.start == us(start[message.step]));
    CHECK(message.end == us(start[message.step] + 3));
  }
  CHECK(schedule.time == us(14));
}

TEST_CASE("all messages at once share the root's link") {
  Collective collective{.kind = CollectiveKind::gather, .bytes = Bytes{3000}};
  collective.algorithm = Algorithm::linear;
  collective.root = 2;
  const Schedule schedule = timed(collective, 4, kPlain);
  REQUIRE(schedule.messages.size() == 3);
  for (const ScheduledMessage& message : schedule.messages) {
    CHECK(message.to == 2);
    CHECK(message.end == Time::microseconds(9));
  }
}

TEST_CASE("two trees keep links busy that one leaves idle") {
  // 16 ranks, 64 MB in 128 segments: nearly S/B, where a binomial tree takes 4 S/B.
  Collective collective{.kind = CollectiveKind::broadcast, .bytes = Bytes{64'000'000}};
  collective.algorithm = Algorithm::double_tree;
  collective.step.segment = Bytes{500'000};
  const Time alone = Time::milliseconds(64);
  const Time two = timed(collective, 16, kPlain).time;
  CHECK(two >= alone);
  CHECK(two < Time::milliseconds(68));
  collective.algorithm = Algorithm::tree;
  CHECK(timed(collective, 16, kPlain).time == alone * 4);
}

TEST_CASE("arrivals follow one another in every schedule") {
  for (const AlgorithmEntry& entry : algorithms()) {
    Collective collective{.kind = entry.kind, .bytes = Bytes{4 * 1001}};
    collective.algorithm = entry.algorithm;
    collective.per_host = entry.algorithm == Algorithm::hierarchical ? 3 : 1;
    const Schedule schedule = timed(collective, 7, kPlain);
    CAPTURE(to_string(entry.kind), to_string(entry.algorithm));
    CHECK(schedule.time == last_arrival(schedule));
    for (const ScheduledMessage& message : schedule.messages) {
      CHECK(message.start >= Time{});
      CHECK(message.end > message.start);
    }
  }
}

TEST_CASE("a collective that lasts for weeks is refused") {
  Schedule schedule = schedule_of({.bytes = Bytes{std::int64_t{1} << 40}}, 2);
  CHECK_THROWS_WITH(time_messages(schedule, {.between_hosts = {1000}, .in_host = std::nullopt}),
                    Contains("longer than a week"));
}

}  // namespace
}  // namespace lockstep
