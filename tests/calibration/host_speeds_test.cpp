#include "calibration/host_speeds.h"

#include "tests/catch.h"

using namespace lockstep;

namespace {

HostTimes seen(int process, int rank, const std::vector<std::int64_t>& us) {
  HostTimes host{.process = process, .rank = rank, .times = {}};
  for (const std::int64_t time : us) host.times.push_back(Time::microseconds(time));
  return host;
}

}  // namespace

TEST_CASE("the slowest of the ranks is as slow as the slowest of a process usually is") {
  // Three processes of two ranks: (100, 120), (130, 100), (100, 150) us. Median of all six: (100 +
  // 120) / 2 = 110. The slower of each: 120, 130, 150; the faster always 100. Rank 0's median is
  // 100 and rank 1's 120, so rank 1 is the one of 130.
  const std::vector<double> hosts =
      hosts_of_ranks({seen(0, 0, {100}), seen(0, 1, {120}), seen(1, 0, {130}), seen(1, 1, {100}),
                      seen(2, 0, {100}), seen(2, 1, {150})});
  REQUIRE(hosts.size() == 2);
  CHECK(hosts[0] == Approx(100.0 / 110));
  CHECK(hosts[1] == Approx(130.0 / 110));
}

TEST_CASE("a process that lacks a rank says nothing about hosts side by side") {
  const std::vector<double> hosts =
      hosts_of_ranks({seen(0, 0, {100}), seen(0, 1, {300}), seen(1, 1, {900})});
  REQUIRE(hosts.size() == 2);
  CHECK(hosts[0] == Approx(0.5));
  CHECK(hosts[1] == Approx(1.5));
}

TEST_CASE("a rank alone is like any other") {
  CHECK(hosts_of_ranks({seen(0, 0, {100}), seen(1, 0, {120})}).empty());
  CHECK(hosts_of_ranks({}).empty());
}

TEST_CASE("hosts that are slow by turns hold each other up in every step") {
  // Rank 0 takes 100, 100, 140 and 140 us, rank 1 120, 110, 100 and 100: medians of 120 and 110, of
  // both 115 (the fifth step is one that rank 0 lacks). The slower of each step takes 120, 110, 140
  // and 140 (median 130), the faster 100.
  const std::vector<double> hosts =
      hosts_of_ranks({seen(0, 0, {100, 100, 140, 140}), seen(0, 1, {120, 110, 100, 100, 900})});
  REQUIRE(hosts.size() == 2);
  CHECK(hosts[0] == Approx(130.0 / 115));
  CHECK(hosts[1] == Approx(100.0 / 115));
}
