#include "calibration/robust.h"

#include <cmath>
#include <random>

#include "calibration/speed.h"
#include "tests/catch.h"

using namespace lockstep;

namespace {

std::vector<Time> times(const std::vector<std::int64_t>& ns) {
  std::vector<Time> out;
  for (const std::int64_t value : ns) out.push_back(Time::nanoseconds(value));
  return out;
}

/// Processes of one rank of one model: the index, and what a step took, in ns.
void add_processes(std::vector<ProfileSample>& samples, int rank,
                   const std::vector<std::pair<std::int64_t, std::int64_t>>& processes) {
  for (const auto& [index, step] : processes) {
    ProfileSample sample;
    sample.process = static_cast<int>(samples.size());
    sample.rank = rank;
    sample.speed_index = {Time::nanoseconds(index), Time::nanoseconds(index)};
    sample.steps = {Time::nanoseconds(step)};
    samples.push_back(sample);
  }
}

}  // namespace

TEST_CASE("medians of odd and even counts") {
  CHECK(median(std::vector<double>{3, 1, 2}) == 2);
  CHECK(median(std::vector<double>{4, 1, 2, 3}) == 2.5);
  CHECK(median(times({10, 20})) == Time::nanoseconds(15));
  CHECK(lower_median(times({10, 20})) == Time::nanoseconds(10));
  CHECK(lower_median(times({10, 40, 20})) == Time::nanoseconds(20));
}

TEST_CASE("sigma from groups of three is not biased by their own medians") {
  std::mt19937 engine(11);
  std::normal_distribution<double> normal(0, 0.05);
  std::vector<std::vector<double>> groups;
  for (int i = 0; i < 2000; ++i) {
    const double center = i;  // where a group lies does not matter
    groups.push_back({center + normal(engine), center + normal(engine), center + normal(engine)});
  }
  CHECK(pairwise_sigma(groups) == Approx(0.05).epsilon(0.05));
  CHECK(pairwise_sigma({{1}, {2}}) == 0);
  for (int i = 0; i < 200; ++i) groups.push_back({0, 5});  // outliers among the pairs
  CHECK(pairwise_sigma(groups) < 0.056);
}

TEST_CASE("a sequence is made non-decreasing, an outlier moves nothing else") {
  CHECK(non_decreasing(times({1, 2, 3})) == times({1, 2, 3}));
  // 50 is pooled with the 12 behind it: their lower median is 12.
  CHECK(non_decreasing(times({10, 50, 12, 20})) == times({10, 12, 12, 20}));
  // 5 pools with 10 and 20 before it: lower medians {20, 5} -> 5, then {10, 20, 5} -> 10.
  CHECK(non_decreasing(times({10, 20, 5})) == times({10, 10, 10}));
}

TEST_CASE("times are compared at equal speed") {
  // The reference took 8 and 12 ns around the block, 10 on average, against 5: twice as slow.
  const SpeedIndex index{Time::nanoseconds(8), Time::nanoseconds(12)};
  const Time measured = Time::nanoseconds(100);
  CHECK(Speed(Time::nanoseconds(5), Machine{}).normalised(measured, index) ==
        Time::nanoseconds(50));
  CHECK(Speed(Time::nanoseconds(5), Machine{}).normalised(measured, {}) == measured);
  // Where steps follow only half as far: the root of it.
  CHECK(Speed(Time::nanoseconds(5), Machine{}, 0.5).normalised(measured, index).ns() ==
        Approx(100 / std::sqrt(2)).epsilon(0.01));
  Machine gpus;
  gpus.gpus.resize(1);
  CHECK(Speed(Time::nanoseconds(5), gpus).normalised(measured, index) == measured);
}

TEST_CASE("how far steps follow the reference kernel is the slope of the logarithms") {
  // 1000, 2000, 4000 against 100'000 x (1, 2^0.5, 2): half as far, whatever the rank's own level.
  std::vector<ProfileSample> samples;
  add_processes(samples, 0, {{1000, 100'000}, {2000, 141'421}, {4000, 200'000}});
  CHECK(fit_drift_exponent(samples) == 1);  // two beyond the one a group: too few
  add_processes(samples, 1, {{4000, 900'000}, {2000, 636'396}, {1000, 450'000}});
  add_processes(samples, 2, {{1000, 70'000}, {2000, 98'995}, {4000, 140'000}});
  CHECK(fit_drift_exponent(samples) == Approx(0.5).epsilon(1e-3));
  // Steps that get faster as the kernel gets slower do not follow it at all.
  std::vector<ProfileSample> against;
  add_processes(against, 0, {{1000, 4000}, {2000, 2000}, {4000, 1000}, {8000, 500}});
  add_processes(against, 1, {{1000, 4000}, {2000, 2000}, {4000, 1000}, {8000, 500}});
  CHECK(fit_drift_exponent(against) == 0);
  // A steady index tells nothing, however the steps vary.
  std::vector<ProfileSample> steady;
  add_processes(steady, 0, {{1000, 4000}, {1001, 9000}, {1000, 1000}, {1001, 500}});
  add_processes(steady, 1, {{1000, 4000}, {1001, 2000}, {1000, 7000}, {1001, 500}});
  CHECK(fit_drift_exponent(steady) == 1);
}
