#include "sim/collectives/steps.h"

#include <numeric>
#include <vector>

#include "tests/catch.h"

namespace lockstep {
namespace {

Bytes sent(const StepPlan& plan, std::uint32_t rank, std::uint32_t step) {
  std::vector<Message> messages;
  plan.sends(rank, step, messages);
  return messages.empty() ? Bytes{} : messages.front().bytes;
}

TEST_CASE("chunks are whole elements and add up") {
  // 10 elements of 4 bytes over 4 ranks: 3, 3, 2, 2.
  const StepPlan plan({.bytes = Bytes{40}}, 4);
  CHECK(plan.chunk(0) == Bytes{12});
  CHECK(plan.chunk(1) == Bytes{12});
  CHECK(plan.chunk(2) == Bytes{8});
  CHECK(plan.chunk(3) == Bytes{8});
  CHECK_FALSE(plan.even());
  CHECK(StepPlan({.bytes = Bytes{48}}, 4).even());
}

TEST_CASE("a ring all-reduce of real arrays leaves the sum everywhere") {
  for (std::uint32_t n = 2; n <= 7; ++n) {
    CAPTURE(n);
    const Collective collective{.bytes = Bytes{4 * 10}};
    const StepPlan plan(collective, n);
    REQUIRE(plan.steps() == 2 * (n - 1));
    // held[r][c]: rank r's chunk c, one number standing for it; rank r brings 10^r.
    std::vector<std::vector<std::int64_t>> held(n, std::vector<std::int64_t>(n));
    std::int64_t power = 1, sum = 0;
    for (auto& chunks : held) {
      for (auto& chunk : chunks) chunk = power;
      sum += power;
      power *= 10;
    }
    std::int64_t moved = 0;
    for (std::uint32_t s = 0; s < plan.steps(); ++s) {
      const auto before = held;
      for (std::uint32_t r = 0; r < n; ++r) {
        // The chunk that rank r passes on in step s, by its definition: r - s while reducing,
        // r + 1 - s while gathering.
        const std::uint32_t c = s < n - 1 ? (r + n - s) % n : (r + 1 + 2 * n - (s - n + 1)) % n;
        REQUIRE(sent(plan, r, s) == plan.chunk(c));
        moved += sent(plan, r, s).count;
        std::int64_t& target = held[(r + 1) % n][c];
        target = plan.reduces(s) ? target + before[r][c] : before[r][c];
      }
    }
    for (const auto& chunks : held) CHECK(chunks == std::vector<std::int64_t>(n, sum));
    // All ranks together: 2(n-1) times the array.
    CHECK(moved == 2 * (n - 1) * collective.bytes.count);
  }
}

TEST_CASE("a broadcast goes down the chain in segments") {
  // 10 bytes in segments of 4: 4, 4, 2. Rank r sends segment s - r in step s.
  const StepPlan plan({.kind = CollectiveKind::broadcast,
                       .bytes = Bytes{10},
                       .step = {.element = Bytes{1}, .segment = Bytes{4}}},
                      3);
  CHECK(plan.steps() == 4);
  const auto all_sent = [&](std::uint32_t rank) {
    std::vector<std::int64_t> bytes;
    for (std::uint32_t s = 0; s < plan.steps(); ++s) bytes.push_back(sent(plan, rank, s).count);
    return bytes;
  };
  CHECK(all_sent(0) == std::vector<std::int64_t>{4, 4, 2, 0});
  CHECK(all_sent(1) == std::vector<std::int64_t>{0, 4, 4, 2});
  CHECK(all_sent(2) == std::vector<std::int64_t>{0, 0, 0, 0});
  CHECK_FALSE(plan.even());
}

TEST_CASE("one rank and no bytes need no message") {
  CHECK(StepPlan({.bytes = Bytes{40}}, 1).steps() == 0);
  const StepPlan empty({.bytes = Bytes{}}, 3);
  for (std::uint32_t s = 0; s < empty.steps(); ++s) CHECK(sent(empty, 0, s) == Bytes{});
  const StepPlan nothing({.kind = CollectiveKind::broadcast}, 3);
  for (std::uint32_t s = 0; s < nothing.steps(); ++s) CHECK(sent(nothing, 0, s) == Bytes{});
}

}  // namespace
}  // namespace lockstep
