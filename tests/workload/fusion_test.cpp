#include "sim/workload/fusion.h"

#include <numeric>
#include <random>

#include "sim/core/error.h"
#include "tests/catch.h"

namespace lockstep {
namespace {

using Groups = std::vector<Bucket>;

std::vector<Gradient> of_sizes(const std::vector<std::int64_t>& sizes, int type = 4) {
  std::vector<Gradient> gradients;
  for (const std::int64_t bytes : sizes) gradients.push_back({Bytes{bytes}, type});
  return gradients;
}

Time us(std::int64_t count) {
  return Time::microseconds(count);
}

/// On cores: what can be negotiated can be read.
std::vector<ReadyTimes> ready_at(const std::vector<std::int64_t>& times) {
  std::vector<ReadyTimes> ready;
  for (const std::int64_t time : times) ready.push_back({us(time), us(time)});
  return ready;
}

StrategyOptions cycles_of(std::int64_t cycle_us, Bytes threshold = Bytes{1 << 20}) {
  StrategyOptions options;
  options.cycle_time = us(cycle_us);
  options.fusion_threshold = threshold;
  return options;
}

/// 10 us to negotiate; 1 us a byte to reduce.
CycleCosts plain_costs(const std::vector<Gradient>& gradients) {
  return {.negotiation = us(10), .reduction = [gradients](const Bucket& group) {
            return us(bytes_of(group, gradients).count);
          }};
}

}  // namespace

TEST_CASE("gradients fuse up to the threshold, and never beyond it", "[fusion]") {
  CHECK(fuse(of_sizes({}), Bytes{10}).empty());
  CHECK(fuse(of_sizes({4, 4, 2}), Bytes{10}) == Groups{{0, 1, 2}});
  CHECK(fuse(of_sizes({4, 4, 4}), Bytes{10}) == Groups{{0, 1}, {2}});
  CHECK(fuse(of_sizes({20, 4, 4}), Bytes{10}) == Groups{{0}, {1, 2}});
  // Behind the 4, the 8 does not fit: 4 + 8 leave the threshold, so that nobody looks further.
  CHECK(fuse(of_sizes({4, 8, 2}), Bytes{10}) == Groups{{0}, {1, 2}});
  CHECK(fuse(of_sizes({3, 1, 2}), Bytes{0}) == Groups{{0}, {1}, {2}});
}

TEST_CASE("other types are skipped as long as all that was seen fits", "[fusion]") {
  std::vector<Gradient> gradients = of_sizes({2, 2, 2, 2});
  gradients[1].type = gradients[2].type = 2;
  CHECK(fuse(gradients, Bytes{8}) == Groups{{0, 3}, {1, 2}});
  // 2 + 2 + 2 skipped leave a threshold of 5 before the last one is looked at.
  CHECK(fuse(gradients, Bytes{5}) == Groups{{0}, {1, 2}, {3}});
}

TEST_CASE("every gradient is in one group, of one type, within the threshold", "[fusion]") {
  std::mt19937 random(20240610);
  const auto draw = [&random](int least, int most) {
    return std::uniform_int_distribution(least, most)(random);
  };
  for (int round = 0; round < 500; ++round) {
    std::vector<Gradient> gradients;
    for (int i = draw(1, 60); i > 0; --i) gradients.push_back({Bytes{draw(1, 100)}, draw(0, 1)});
    const Bytes threshold{draw(0, 300)};
    std::vector<int> seen;
    for (const Bucket& group : fuse(gradients, threshold)) {
      REQUIRE((group.size() == 1 || bytes_of(group, gradients) <= threshold));
      REQUIRE(std::ranges::is_sorted(group));
      for (const int member : group) {
        const auto at = [&](int i) { return gradients[static_cast<std::size_t>(i)]; };
        REQUIRE(at(member).type == at(group.front()).type);
        seen.push_back(member);
      }
    }
    std::ranges::sort(seen);
    std::vector<int> all(gradients.size());
    std::iota(all.begin(), all.end(), 0);
    REQUIRE(seen == all);
  }
}

TEST_CASE("presets are the two eras", "[fusion]") {
  StrategyOptions options;
  CHECK(options.cycle_time == Time::milliseconds(1));
  CHECK(options.fusion_threshold == Bytes{128 << 20});
  take_preset("v0.20", "preset", options);
  CHECK(options.cycle_time == Time::milliseconds(5));
  CHECK(options.fusion_threshold == Bytes{64 << 20});
  take_preset("v0.21", "preset", options);
  CHECK(options == StrategyOptions{});
  CHECK_THROWS_WITH(take_preset("v1", "--horovod-preset", options),
                    StartsWith("--horovod-preset: there is no preset \"v1\"; v0.21"));
}

TEST_CASE("a cycle takes what is ready when it begins", "[fusion]") {
  // Cycles begin at 0, 100, ...: the one at 200 finds the first two (150, 190), negotiates until
  // 210, reduces 2 bytes until 212. The one at 300 finds the third (201).
  const std::vector<Gradient> gradients = of_sizes({1, 1, 1});
  const auto cycles =
      run_cycles(gradients, ready_at({150, 190, 201}), cycles_of(100), plain_costs(gradients));
  REQUIRE(cycles.size() == 2);
  CHECK(cycles[0].begin == us(200));
  CHECK(cycles[0].groups == Groups{{0, 1}});
  CHECK(cycles[0].launches == std::vector<Time>{us(210)});
  CHECK(cycles[1].begin == us(300));
  CHECK(cycles[1].groups == Groups{{2}});
}

TEST_CASE("a long all-reduce delays the next cycle, which then finds more", "[fusion]") {
  // At 100: the first, 500 bytes, until 610. At once, not at 700: the others, one by one because
  // of the threshold: launches at 620, and 10 us later.
  const std::vector<Gradient> gradients = of_sizes({500, 10, 10});
  const auto cycles = run_cycles(gradients, ready_at({100, 101, 609}), cycles_of(100, Bytes{15}),
                                 plain_costs(gradients));
  REQUIRE(cycles.size() == 2);
  CHECK(cycles[0].begin == us(100));
  CHECK(cycles[1].begin == us(610));
  CHECK(cycles[1].groups == Groups{{1}, {2}});
  CHECK(cycles[1].launches == std::vector<Time>{us(620), us(630)});
}

TEST_CASE("a cycle that is shorter than a negotiation lasts as long as that", "[fusion]") {
  // Negotiations end at 10, 20, 30: the one that begins at 30 finds what was ready at 25.
  const std::vector<Gradient> gradients = of_sizes({1});
  const auto cycles = run_cycles(gradients, ready_at({25}), cycles_of(1), plain_costs(gradients));
  REQUIRE(cycles.size() == 1);
  CHECK(cycles[0].begin == us(30));
}

TEST_CASE("on a GPU the thread waits for the device, and not for NCCL", "[fusion]") {
  // Issued at 10 and 20, made at 400 and 700: the cycle at 50 finds both. Fused, they are launched
  // at 700; one by one, at 400 and 700, the reduction of 300 us in between notwithstanding.
  const std::vector<Gradient> gradients = of_sizes({300, 300});
  const std::vector<ReadyTimes> ready{{us(10), us(400)}, {us(20), us(700)}};
  CycleCosts costs = plain_costs(gradients);
  costs.thread_reduces = false;
  const auto fused = run_cycles(gradients, ready, cycles_of(50), costs);
  REQUIRE(fused.size() == 1);
  CHECK(fused[0].launches == std::vector<Time>{us(700)});
  const auto alone = run_cycles(gradients, ready, cycles_of(50, Bytes{0}), costs);
  REQUIRE(alone.size() == 1);
  CHECK(alone[0].launches == std::vector<Time>{us(400), us(700)});
}

}  // namespace lockstep
