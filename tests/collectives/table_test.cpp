#include "sim/collectives/table.h"

#include <random>

#include "sim/collectives/costs.h"
#include "sim/core/engine.h"
#include "sim/core/error.h"
#include "sim/platform/network.h"
#include "sim/platform/sharing.h"
#include "tests/catch.h"

namespace lockstep {
namespace {

CollectivePoint point(std::int64_t bytes, double us, double host_us = 1) {
  CollectivePoint point;
  point.bytes = Bytes{bytes};
  point.p50 = Time::from_seconds(us * 1e-6);
  point.host = Time::from_seconds(host_us * 1e-6);
  return point;
}

CollectiveTable table_of(int workers, std::vector<CollectivePoint> points,
                         const std::string& collective = "all_reduce") {
  CollectiveTable table;
  table.collective = collective;
  table.workers = workers;
  table.points = std::move(points);
  return table;
}

TEST_CASE("at a measured size the table says what was measured") {
  const CollectiveTable table = table_of(2, {point(1000, 10, 2), point(4000, 40, 4)});
  const TableCost cost = lookup(table, Bytes{4000});
  CHECK(cost.device == Time::microseconds(40));
  CHECK(cost.host == Time::microseconds(4));
  CHECK_FALSE(cost.beyond_sizes);
  CHECK_FALSE(cost.other_workers);
}

TEST_CASE("between sizes: straight in bytes, exact for latency and bandwidth") {
  // 6 us + 2 us / 1000 B: at 1000 B 8, at 4000 B 14; half way 11, of which 5 are bandwidth.
  const TableCost cost = lookup(table_of(2, {point(1000, 8, 1), point(4000, 14, 4)}), Bytes{2500});
  CHECK(cost.device == Time::microseconds(11));
  CHECK(cost.bandwidth_share == Approx(5.0 / 11));
  CHECK(cost.host.us() == Approx(2.5));
  CHECK_FALSE(cost.beyond_sizes);
  // Steeper than proportional, as where a protocol changes: still through both points.
  CHECK(lookup(table_of(2, {point(1000, 10), point(2000, 30)}), Bytes{1500}).device ==
        Time::microseconds(20));
  // A larger size measured faster.
  CHECK(lookup(table_of(2, {point(1000, 10), point(2000, 8)}), Bytes{1500}).device ==
        Time::microseconds(9));
}

TEST_CASE("what a call takes behind other launches comes with every size") {
  CollectiveTable table = table_of(2, {point(1000, 8), point(4000, 14)});
  table.call_between = Time::microseconds(7);
  for (const std::int64_t bytes : {10, 1000, 2500, 9000}) {
    CHECK(lookup(table, Bytes{bytes}).between == Time::microseconds(7));
  }
  table.points.pop_back();
  CHECK(lookup(table, Bytes{1}).between == Time::microseconds(7));
}

TEST_CASE("nothing is read off sizes that are held out") {
  CollectiveTable table = table_of(2, {point(1000, 8), point(4000, 14)});
  table.held_out = {point(2500, 100)};
  CHECK(lookup(table, Bytes{2500}).device == Time::microseconds(11));
}

TEST_CASE("beyond the ends: latency and bandwidth of the last two points") {
  const CollectiveTable table = table_of(2, {point(1000, 10), point(2000, 12), point(4000, 18)});
  // Below: slope 2 us / 1000 B, latency 8 us. Above: 6 us / 2000 B.
  const TableCost below = lookup(table, Bytes{500});
  CHECK(below.device == Time::microseconds(9));
  CHECK(below.beyond_sizes);
  CHECK(below.bandwidth_share == Approx(1.0 / 9));
  CHECK(lookup(table, Bytes{0}).device == Time::microseconds(8));
  const TableCost above = lookup(table, Bytes{10'000});
  CHECK(above.device == Time::microseconds(36));
  CHECK(above.beyond_sizes);
  CHECK(above.bandwidth_share == Approx(30.0 / 36));
}

TEST_CASE("beyond the ends nothing gets negative or falls") {
  // Steeper than proportional: through the origin.
  CHECK(lookup(table_of(2, {point(1000, 10), point(2000, 40)}), Bytes{500}).device ==
        Time::microseconds(5));
  // A larger size measured faster: flat.
  CHECK(lookup(table_of(2, {point(1000, 10), point(2000, 9)}), Bytes{8000}).device ==
        Time::microseconds(9));
  CHECK(lookup(table_of(2, {point(1000, 10), point(2000, 9)}), Bytes{10}).device ==
        Time::microseconds(10));
}

TEST_CASE("a table of one size") {
  const CollectiveTable table = table_of(2, {point(1000, 10)});
  CHECK(lookup(table, Bytes{1000}).device == Time::microseconds(10));
  CHECK(lookup(table, Bytes{100}).device == Time::microseconds(10));
  CHECK(lookup(table, Bytes{3000}).device == Time::microseconds(30));
}

TEST_CASE("from one number of workers to another, by the ring") {
  // Measured: t(2, S) = 2 (10 us + S/2 at 1 B/us). Asked: 4 workers, 4000 B: 6 messages of 1000 B,
  // 6 (10 + 1000) us; read from the size with the same chunk, 2000 B: 2020 us, times 3/1.
  const std::vector<CollectiveTable> tables{table_of(2, {point(2000, 2020), point(4000, 4020)})};
  const TableCost cost = estimate(tables, CollectiveKind::all_reduce, 4, Bytes{4000});
  CHECK(cost.device == Time::microseconds(6060));
  CHECK(cost.other_workers);
  CHECK_FALSE(estimate(tables, CollectiveKind::all_reduce, 2, Bytes{4000}).other_workers);
}

TEST_CASE("a broadcast to more workers: latency for every hop, bandwidth once") {
  const std::vector<CollectiveTable> tables{
      table_of(2, {point(1000, 20), point(4000, 50)}, "broadcast")};
  // Below 1000 B the line 10 us + B/100: at 500 B 10 + 5; three hops: 30 + 5.
  CHECK(estimate(tables, CollectiveKind::broadcast, 4, Bytes{500}).device ==
        Time::microseconds(35));
}

TEST_CASE("the nearest number of workers is used, of two as near the larger") {
  const std::vector<CollectiveTable> tables{table_of(2, {point(8, 1)}), table_of(8, {point(8, 7)}),
                                            table_of(4, {point(8, 1)}, "broadcast")};
  // 4 lies as near to 2 as to 8: from 8, 7 us for 7 steps: 3 us.
  CHECK(estimate(tables, CollectiveKind::all_reduce, 4, Bytes{4}).device == Time::microseconds(3));
  CHECK(estimate(tables, CollectiveKind::all_reduce, 3, Bytes{12}).device == Time::microseconds(2));
}

TEST_CASE("a message that is latency alone flows no faster than a link can") {
  // One picosecond for a thousand bytes: 1 PB/s.
  const std::vector<CollectiveTable> tables{
      table_of(2, {point(1000, 20), point(2000, 20.000001)}),
      table_of(2, {point(1000, 20), point(2000, 20.000001)}, "broadcast")};
  for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::broadcast}) {
    for (int workers = 2; workers <= 64; ++workers) {
      const StepCost step = effective_step(tables, kind, workers, Bytes{1500});
      CHECK(step.rate > Bandwidth{});
      CHECK(step.rate.bytes_per_second <= kLargestBandwidth);
    }
  }
}

TEST_CASE("a table generated from the formula gives what the step-by-step run gives") {
  const std::uint32_t n = 4;
  const Network network(plain_network({.workers = n,
                                       .device_bandwidth = {90'000'000'000},
                                       .host_bandwidth = {2'500'000'000},
                                       .host_latency = Time::microseconds(3)}));
  CollectiveTable table = table_of(static_cast<int>(n), {});
  std::vector<Collective> collectives;
  for (std::int64_t bytes = 1024; bytes <= 64 * 1024 * 1024; bytes *= 4) {
    Collective formula{.bytes = Bytes{bytes}};
    formula.step = {.latency = Time::microseconds(6), .rate = {2'500'000'000}};
    CollectivePoint measured;
    measured.bytes = Bytes{bytes};
    measured.p50 = formula_time(formula, n);
    table.points.push_back(measured);
    collectives.push_back({.bytes = Bytes{bytes}});
  }
  ProgramBuilder builder;
  for (std::size_t c = 0; c < collectives.size(); ++c) {
    builder.add({.collective = static_cast<std::int32_t>(c), .lane = Lane::communication});
  }
  TaskGraph by_table;
  by_table.programs = {builder.build()};
  by_table.program_of_worker.assign(n, 0);
  by_table.collectives = collectives;
  TaskGraph by_steps = by_table;
  for (std::size_t c = 0; c < collectives.size(); ++c) {
    by_table.collectives[c].duration = lookup(table, collectives[c].bytes).device;
    by_steps.collectives[c].expanded = true;
  }
  EngineOptions options;
  options.iterations = 3;
  options.network = &network;
  const EngineResult table_run = run(by_table, options), step_run = run(by_steps, options);
  CHECK(table_run.step_end == step_run.step_end);
  CHECK(table_run.collectives == step_run.collectives);
}

TEST_CASE("messages with the latency and bandwidth of their size") {
  // t(2, S) = 2 (10 us + S/2 at 100 B/us) is one line, so beyond the ends it is recovered exactly.
  const std::vector<CollectiveTable> tables{table_of(2, {point(1000, 30), point(2000, 40)})};
  const StepCost step = effective_step(tables, CollectiveKind::all_reduce, 2, Bytes{8000});
  CHECK(step.latency.us() == Approx(10));
  CHECK(static_cast<double>(step.rate.bytes_per_second) == Approx(100e6));
}

TEST_CASE("tables that cannot be used are refused") {
  CHECK_THROWS_WITH(lookup(table_of(2, {}), Bytes{1}), Contains("has no points"));
  CHECK_THROWS_WITH(lookup(table_of(2, {point(2, 1), point(2, 1)}), Bytes{1}),
                    Contains("not ascending"));
  CHECK_THROWS_WITH(estimate({}, CollectiveKind::all_reduce, 2, Bytes{1}),
                    Contains("no measured all_reduce"));
  CHECK_THROWS_AS(lookup(table_of(1, {point(2, 1)}), Bytes{1}), InputError);
}

}  // namespace
}  // namespace lockstep
