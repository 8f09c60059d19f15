#include "sim/collectives/within_host.h"

#include <cmath>

#include "tests/catch.h"

namespace lockstep {
namespace {

/// Of NCCL on one host: `latency` us, and `per_byte` us for each of 1000 and a million bytes.
CollectiveTable nccl_table(int workers, double latency, double per_byte,
                           const std::string& collective = "all_reduce") {
  CollectiveTable table;
  table.collective = collective;
  table.backend = "nccl";
  table.workers = workers;
  table.topology = kOneHost;
  for (const std::int64_t bytes : {1000, 1'000'000}) {
    CollectivePoint point;
    point.bytes = Bytes{bytes};
    point.p50 = Time::from_seconds((latency + per_byte * static_cast<double>(bytes)) * 1e-6);
    point.host = Time::microseconds(workers);
    table.points.push_back(point);
  }
  return table;
}

double us_of(const std::vector<CollectiveTable>& tables, int workers, std::int64_t bytes,
             CollectiveKind kind = CollectiveKind::all_reduce) {
  return estimate(tables, kind, workers, Bytes{bytes}).device.us();
}

TEST_CASE("a law of latency by doublings and bytes by link passes is found from two numbers") {
  // a(n) = 6 + 2 log2(n) us; g(n) = 0.002 + 0.003 x 2(n-1)/n us a byte: 0.005, 0.006, 0.0065.
  const auto table = [](int n) {
    return nccl_table(n, 6 + 2 * std::log2(n), 0.002 + 0.003 * 2 * (n - 1) / n);
  };
  const std::vector<CollectiveTable> two{table(2), table(3)};
  for (const std::int64_t bytes : {0, 500, 1000, 300'000, 5'000'000}) {
    CHECK(us_of(two, 4, bytes) == Approx(10 + 0.0065 * static_cast<double>(bytes)));
    CHECK(us_of(two, 8, bytes) == Approx(12 + 0.00725 * static_cast<double>(bytes)));
  }
  // Between measured numbers, and from three of them, it is the same law.
  CHECK(us_of({table(2), table(4)}, 3, 300'000) == Approx(6 + 2 * std::log2(3) + 0.006 * 300'000));
  CHECK(us_of({table(2), table(3), table(4)}, 8, 300'000) == Approx(12 + 0.00725 * 300'000));
  CHECK(estimate(two, CollectiveKind::all_reduce, 4, Bytes{1000}).host == Time::microseconds(3));
  CHECK(estimate(two, CollectiveKind::all_reduce, 4, Bytes{1000}).other_workers);
  CHECK(estimate(two, CollectiveKind::all_reduce, 4, Bytes{1'000'000}).bandwidth_share ==
        Approx(6500.0 / 6510));
}

TEST_CASE("at a measured number of workers the law has no part") {
  const std::vector<CollectiveTable> tables{nccl_table(2, 10, 0.001), nccl_table(3, 10, 0.009)};
  CHECK(us_of(tables, 2, 1000) == Approx(11));
  CHECK(us_of(tables, 3, 1000) == Approx(19));
}

TEST_CASE("from one number of workers: what was seen on the shipped machine") {
  // 10 us and 1 ns a byte on two. On four an all-reduce has 1.45 of the latency and 0.4 + 0.6 x 1.5
  // of the bytes' time, a broadcast 1.2 and 0.9 + 0.1 x 1.5; a gather three times the bytes.
  const std::vector<CollectiveTable> tables{nccl_table(2, 10, 0.001),
                                            nccl_table(2, 10, 0.001, "broadcast"),
                                            nccl_table(2, 10, 0.001, "gather")};
  CHECK(us_of(tables, 4, 1'000'000) == Approx(14.5 + 1300));
  CHECK(us_of(tables, 4, 1'000'000, CollectiveKind::broadcast) == Approx(12 + 1050));
  CHECK(us_of(tables, 4, 1'000'000, CollectiveKind::gather) == Approx(10 + 3000));
  // From four back to two it is the same law.
  CHECK(us_of({nccl_table(4, 14.5, 0.0013)}, 2, 1'000'000) == Approx(10 + 1000));
}

TEST_CASE("small chunks that three cut unevenly say little about four") {
  // 10 us on two and three; bytes flow as they do on two, 4/3 and 3/2 as long, but on three each
  // byte takes 0.003 us more. Of 1000 B, 5 us on three, half is taken from there: 5 x 9/8 = 5.625
  // us, and half from two: 1.5 x 1.5 = 2.25. Of a million all is. (Two passes for two: g(4) / g(2)
  // on the line through both, not below proportion: 3/2.)
  const std::vector<CollectiveTable> tables{nccl_table(2, 10, 0.0015), nccl_table(3, 10, 0.005)};
  CHECK(us_of(tables, 4, 1000) == Approx(10 + (5.625 + 2.25) / 2));
  CHECK(us_of(tables, 4, 1'000'000) == Approx(10 + 5625));
  // Six are split by both: three, the nearest, is what counts.
  CHECK(us_of(tables, 6, 1000) == Approx(10 + 5 * 5.0 / 4));
}

TEST_CASE("more workers are never faster") {
  const std::vector<CollectiveTable> faster{nccl_table(2, 10, 0.002), nccl_table(3, 9, 0.001)};
  CHECK(us_of(faster, 4, 1'000'000) == Approx(9 + 1000));
  // Nor does what a byte takes grow faster than its passes: 2(n-1)/n is 4/3 on three, 3/2 on four.
  const std::vector<CollectiveTable> slower{nccl_table(2, 10, 0.001), nccl_table(3, 10, 0.010)};
  CHECK(us_of(slower, 4, 1'000'000) == Approx(10 + 10'000 * 9.0 / 8));
}

TEST_CASE("where bytes cost nothing, and where sizes are one, there is an answer") {
  CHECK(us_of({nccl_table(2, 10, 0), nccl_table(3, 12, 0)}, 4, 1'000'000) ==
        Approx(12 + 2 / std::log2(1.5) * std::log2(4.0 / 3)));
  CollectiveTable one = nccl_table(2, 10, 0);
  one.points.pop_back();
  CHECK(us_of({one}, 4, 1000) == Approx(14.5));
}

TEST_CASE("tables of another collective, backend or topology say nothing about this one") {
  std::vector<CollectiveTable> tables{nccl_table(2, 10, 0.001)};
  const double alone = us_of(tables, 4, 500'000);
  tables.push_back(nccl_table(3, 100, 0.1, "broadcast"));
  tables.push_back(nccl_table(16, 100, 0.1));
  tables.back().topology = "4 hosts";
  CHECK(us_of(tables, 4, 500'000) == Approx(alone));
  // Across hosts and with other backends the ring's algebra holds: t(4, S) = 3 t(2, S/2).
  for (const bool hosts : {true, false}) {
    CollectiveTable other = nccl_table(2, 10, 0.001);
    (hosts ? other.topology : other.backend) = hosts ? "2 hosts" : "gloo";
    CHECK(us_of({other}, 4, 500'000) == Approx(3 * (10 + 250)));
  }
}

TEST_CASE("a message of a ring is what the ring's algebra says, whoever measured") {
  // t(2, S) = 2 (5 us + S/2 at 1 ns a byte): to eight workers latency and rate stay.
  const std::vector<CollectiveTable> tables{nccl_table(2, 10, 0.001)};
  const StepCost step = effective_step(tables, CollectiveKind::all_reduce, 8, Bytes{8'000'000});
  CHECK(step.latency.us() == Approx(5));
  CHECK(static_cast<double>(step.rate.bytes_per_second) == Approx(1e9));
}

}  // namespace
}  // namespace lockstep
