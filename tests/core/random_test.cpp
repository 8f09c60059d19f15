#include "sim/core/random.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/catch.h"

namespace lockstep {
namespace {

TEST_CASE("a draw depends on its key alone") {
  const DrawKey key{7, 1, 2, 3};
  const double first = standard_normal(key);
  standard_normal({8, 1, 2, 3});
  CHECK(standard_normal(key) == first);
  CHECK(standard_normal({8, 1, 2, 3}) != first);
  CHECK(standard_normal({7, 2, 2, 3}) != first);
  CHECK(standard_normal({7, 1, 3, 3}) != first);
  CHECK(standard_normal({7, 1, 2, 4}) != first);
  CHECK(standard_normal({7 + (std::uint64_t{1} << 40), 1, 2, 3}) != first);
}

TEST_CASE("normal variates have mean zero and deviation one") {
  // Over n = 40,000 draws: standard error of the mean 0.005, of the deviation 0.0035; 4 of each.
  constexpr int kDraws = 40'000;
  double sum = 0, squares = 0;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const double x = standard_normal({42, i % 8, i / 8, 5});
    sum += x;
    squares += x * x;
  }
  const double mean = sum / kDraws;
  CHECK(std::abs(mean) < 0.02);
  CHECK(std::abs(std::sqrt(squares / kDraws - mean * mean) - 1) < 0.014);
}

TEST_CASE("log-normal factors have median one and the deviation asked for") {
  // Of the median: 1.25 s / sqrt(n) = 0.0013 for s = 0.2, n = 40,000; 4 of it. Of a deviation of
  // 0.2: about 0.0008.
  constexpr std::uint32_t kDraws = 40'000;
  const LogNormal noise(0.2);
  std::vector<double> factors;
  for (std::uint32_t i = 0; i < kDraws; ++i) factors.push_back(noise.draw({1, 0, i, 0}).value());
  std::nth_element(factors.begin(), factors.begin() + kDraws / 2, factors.end());
  CHECK(std::abs(factors[kDraws / 2] - 1) < 0.0052);
  double sum = 0, squares = 0;
  for (const double f : factors) {
    sum += f;
    squares += f * f;
  }
  const double mean = sum / kDraws;
  CHECK(std::abs(std::sqrt(squares / kDraws - mean * mean) / mean - 0.2) < 0.004);
}

TEST_CASE("without noise every factor is one") {
  CHECK_FALSE(LogNormal(0).varies());
  CHECK(LogNormal(0).draw({1, 2, 3, 4}) == Factor{});
}

}  // namespace
}  // namespace lockstep
