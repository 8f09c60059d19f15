#include "sim/analysis/split.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "sim/core/units.h"
#include "tests/catch.h"
#include "tests/synthetic.h"

namespace lockstep {
namespace {

/// a + c b, in microseconds.
struct Line {
  double a = 0, c = 1;
};

ShareTime on_lines(const std::vector<Line>& lines) {
  return [lines](std::size_t device, int samples) {
    return Time::from_seconds((lines[device].a + lines[device].c * samples) * 1e-6);
  };
}

Time longest(const std::vector<int>& shares, const ShareTime& time) {
  Time most;
  for (std::size_t i = 0; i < shares.size(); ++i) most = std::max(most, time(i, shares[i]));
  return most;
}

int sum(const std::vector<int>& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0);
}

TEST_CASE("shares in proportion are whole and leave nobody without", "[split]") {
  CHECK(proportional_shares(128, {1, 3}) == std::vector<int>{32, 96});
  CHECK(proportional_shares(10, {1, 1, 1}) == std::vector<int>{4, 3, 3});
  // 0.0099 and 99.99 of 100.
  CHECK(proportional_shares(100, {1, 10'000}) == std::vector<int>{1, 99});
  CHECK(proportional_shares(3, {1, 1000, 1000}) == std::vector<int>{1, 1, 1});
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> weights(1 + random() % 6);
    for (double& weight : weights) weight = 1 + static_cast<double>(random() % 1000);
    const int samples = static_cast<int>(weights.size() + random() % 500);
    const std::vector<int> shares = proportional_shares(samples, weights);
    REQUIRE(sum(shares) == samples);
    REQUIRE(std::ranges::min(shares) >= 1);
  }
}

TEST_CASE("two and three workers balanced by hand", "[split]") {
  // 10 and 30 us a sample, 64 samples. Even: 320 and 960 us, so 0.1 and 0.0333 samples a us: 48 and
  // 16, which take 480 us each.
  const std::vector<SplitRound> two = balance(64, 2, on_lines({{0, 10}, {0, 30}}));
  REQUIRE(two.size() == 2);
  CHECK(two[0].shares == std::vector<int>{32, 32});
  CHECK(apart(two[0].times) == Approx(2.0 / 3));
  CHECK(two[1].shares == std::vector<int>{48, 16});
  CHECK(two[1].times == std::vector<Time>{us(480), us(480)});
  // 60 and 10 us each, 10 us a sample on the second and third, 40 on the first: in the end
  // 60 + 40 b = 10 + 10 (b2): T = (66 + 60/40 + 1 + 1) / (1/40 + 1/10 + 1/10) = 308.9.
  const ShareTime lines = on_lines({{60, 40}, {10, 10}, {10, 10}});
  const std::vector<SplitRound> three = balance(66, 3, lines);
  CHECK(three.back().shares == best_split(66, 3, lines));
  CHECK(three.back().shares == std::vector<int>{6, 30, 30});
}

TEST_CASE("the best split of linear costs is the closed form's, in whole samples", "[split]") {
  std::mt19937 random(11);
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  for (int round = 0; round < 100; ++round) {
    CAPTURE(round);
    std::vector<Line> lines(2 + random() % 3);
    for (Line& line : lines) line = {between(0, 100), between(5, 50)};
    const int samples = 100 + static_cast<int>(random() % 400);
    double numerator = samples, denominator = 0;
    for (const Line& line : lines) {
      numerator += line.a / line.c;
      denominator += 1 / line.c;
    }
    const double exact = numerator / denominator;  // us
    const ShareTime time = on_lines(lines);
    const std::vector<int> shares = best_split(samples, lines.size(), time);
    REQUIRE(sum(shares) == samples);
    // In whole samples it takes at most as much longer as the slowest device takes for one.
    const double most = std::ranges::max(lines, {}, &Line::c).c;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const double share = (exact - lines[i].a) / lines[i].c;
      REQUIRE(shares[i] <= share + most / lines[i].c + 1e-6);
    }
    const double reached = longest(shares, time).us();
    REQUIRE(reached >= exact - 1e-6);
    REQUIRE(reached <= exact + most + 1e-6);
    REQUIRE(longest(balance(samples, lines.size(), time).back().shares, time).us() >=
            reached - 1e-6);
  }
}

TEST_CASE("the best split is the best of all, whatever the costs", "[split]") {
  // Steps as on a GPU that takes warps of samples: flat, then up.
  const ShareTime stairs = [](std::size_t device, int samples) {
    const int wide = device == 0 ? 4 : 7;
    return us((samples + wide - 1) / wide * (device == 0 ? 30 : 40));
  };
  for (int samples = 2; samples <= 60; ++samples) {
    Time least = us(1'000'000);
    for (int first = 1; first < samples; ++first) {
      least = std::min(least, longest({first, samples - first}, stairs));
    }
    const std::vector<int> shares = best_split(samples, 2, stairs);
    REQUIRE(sum(shares) == samples);
    REQUIRE(longest(shares, stairs) == least);
  }
}

TEST_CASE("a step is the mean of the maxima: Choi's three batches", "[split]") {
  // Choi, Distributed Deep Learning, 2019: one worker on cores, two GPUs, seconds a batch. Every
  // device takes 1.9 s on average; steps take 2.5, 2.3 and 1.8.
  const auto ms = [](std::int64_t n) { return Time::milliseconds(n); };
  const std::vector<std::vector<Time>> batches{{ms(1900), ms(2500), ms(2500)},
                                               {ms(2300), ms(1400), ms(1400)},
                                               {ms(1500), ms(1800), ms(1800)}};
  CHECK(mean_of_maxima(batches) == ms(2200));
  CHECK(maximum_of_means(batches) == ms(1900));
}

}  // namespace
}  // namespace lockstep
