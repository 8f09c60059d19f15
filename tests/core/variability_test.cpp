#include "sim/core/variability.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/catch.h"

namespace lockstep {
namespace {

using Kind = Variability::Kind;

constexpr std::uint32_t kDraws = 40'000;

std::vector<double> draws_of(const Variability& variability) {
  std::vector<double> values;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    values.push_back(draw(variability, {42, i % 8, i / 8, kDrawStream}).value());
  }
  return values;
}

double average(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double share_above(const std::vector<double>& values, double bound) {
  const auto above = std::ranges::count_if(values, [bound](double v) { return v > bound; });
  return static_cast<double>(above) / static_cast<double>(values.size());
}

TEST_CASE("log-normal draws have its quantiles and its mean") {
  const Variability v{.kind = Kind::log_normal, .sigma = 0.5};
  const std::vector<double> values = draws_of(v);
  // A tenth lies above exp(1.2816 sigma) = 1.898, a half above one. Four standard errors: of shares
  // sqrt(q (1 - q) / n) = 0.0015 and 0.0025; of the mean, 1.1331 x 0.533 / sqrt(n) = 0.0030.
  CHECK(std::abs(share_above(values, std::exp(1.281552 * 0.5)) - 0.1) < 0.006);
  CHECK(std::abs(share_above(values, 1) - 0.5) < 0.01);
  CHECK(std::abs(average(values) - 1.133148) < 0.0121);
  CHECK(mean(v) == Approx(1.133148));
}

TEST_CASE("Pareto draws have its tail and its mean") {
  const Variability v{.kind = Kind::pareto, .shape = 3};
  const std::vector<double> values = draws_of(v);
  // P(X > 2) = 1/8, four standard errors 0.0066; the mean is 3/2, the deviation sqrt(3/4), four
  // standard errors 0.0174.
  CHECK(std::ranges::min(values) >= 1);
  CHECK(std::abs(share_above(values, 2) - 0.125) < 0.0066);
  CHECK(std::abs(share_above(values, 4) - 1.0 / 64) < 0.0025);
  CHECK(std::abs(average(values) - 1.5) < 0.0174);
  CHECK(mean(v) == Approx(1.5));
  // The heaviest tail that is taken stops.
  CHECK(std::ranges::max(draws_of({.kind = Kind::pareto, .shape = 1.01})) <= 1e5);
}

TEST_CASE("samples are drawn alike, or replayed as they are listed") {
  Variability v{.kind = Kind::samples, .values = {1, 2, 4}};
  const std::vector<double> values = draws_of(v);
  // A third each, four standard errors 0.0094.
  for (const double bound : {1.5, 3.0}) {
    CHECK(std::abs(share_above(values, bound) - (bound < 2 ? 2.0 : 1.0) / 3) < 0.0094);
  }
  CHECK(mean(v) == Approx(7.0 / 3));
  v.listed = true;
  for (const std::uint32_t worker : {0U, 3U}) {
    for (const std::uint32_t step : {0U, 1U, 2U, 7U}) {
      CHECK(draw(v, {1, worker, step, 9}).value() == v.values[step % 3]);
    }
  }
}

TEST_CASE("a draw below the least is raised to it") {
  const Variability v{.kind = Kind::log_normal, .sigma = 0.5, .least = 1};
  const std::vector<double> values = draws_of(v);
  CHECK(std::ranges::min(values) == 1);
  CHECK(std::abs(share_above(values, 1) - 0.5) < 0.01);
}

TEST_CASE("pauses by steps come once in so many, for all at once or each on its own") {
  Variability v{.kind = Kind::periodic, .every = 4, .high = 3, .low = 1};
  const auto factors = [&v](std::uint32_t worker) {
    std::vector<double> each;
    for (std::uint32_t k = 0; k < 8; ++k) each.push_back(draw(v, {5, worker, k, 9}).value());
    return each;
  };
  CHECK(factors(0) == std::vector<double>{1, 1, 1, 3, 1, 1, 1, 3});
  CHECK(factors(1) == factors(0));
  CHECK(mean(v) == Approx(1.5));
  v.aligned = false;
  bool differ = false;
  for (std::uint32_t worker = 0; worker < 16; ++worker) {
    const std::vector<double> each = factors(worker);
    CHECK(std::ranges::count(each, 3) == 2);
    differ = differ || each != factors(0);
  }
  CHECK(differ);
}

TEST_CASE("pauses by the clock fall due once a period") {
  const auto us = [](std::int64_t n) { return Time::microseconds(n); };
  Variability v{.kind = Kind::periodic, .every = 0, .period = us(250)};
  const DrawKey key{7, 2, 0, 9};
  // At 250, 500, 750, ...
  CHECK(pauses_due(v, key, us(0), us(249)) == 0);
  CHECK(pauses_due(v, key, us(0), us(250)) == 1);
  CHECK(pauses_due(v, key, us(250), us(499)) == 0);
  CHECK(pauses_due(v, key, us(100), us(800)) == 3);
  CHECK(by_clock(v));
  // From a drawn place on: the first within a period, then one each.
  v.aligned = false;
  for (std::uint32_t worker = 0; worker < 50; ++worker) {
    const DrawKey own{7, worker, 0, 9};
    CHECK(pauses_due(v, own, us(0), us(250)) == 1);
    CHECK(pauses_due(v, own, us(0), us(2500)) == 10);
    CHECK(pauses_due(v, own, us(100), us(2600)) == 10);
  }
}

TEST_CASE("what tells workers apart, and what no draw can be made of") {
  CHECK_FALSE(differs_by_worker({}));
  CHECK_FALSE(differs_by_worker({.kind = Kind::log_normal, .sigma = 0}));
  CHECK(differs_by_worker({.kind = Kind::log_normal, .sigma = 0.1}));
  CHECK(differs_by_worker({.kind = Kind::pareto, .shape = 2}));
  CHECK_FALSE(differs_by_worker({.kind = Kind::periodic, .every = 2}));
  CHECK(differs_by_worker({.kind = Kind::periodic, .every = 2, .aligned = false}));
  CHECK(differs_by_worker({.kind = Kind::samples, .values = {1, 2}}));
  CHECK_FALSE(differs_by_worker({.kind = Kind::samples, .listed = true, .values = {1, 2}}));

  CHECK(fault_of({}).empty());
  CHECK_FALSE(fault_of({.kind = Kind::log_normal, .sigma = -0.1}).empty());
  CHECK_FALSE(fault_of({.kind = Kind::pareto, .shape = 1}).empty());
  CHECK_FALSE(fault_of({.kind = Kind::periodic}).empty());
  CHECK_FALSE(fault_of({.kind = Kind::samples}).empty());
  CHECK_FALSE(fault_of({.kind = Kind::samples, .values = {-1}}).empty());
}

}  // namespace
}  // namespace lockstep
