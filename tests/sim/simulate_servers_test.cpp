#include <algorithm>

#include "sim/core/error.h"
#include "sim/platform/sharing.h"
#include "sim/report/table.h"
#include "sim/scenario/collective_costs.h"
#include "sim/simulate.h"
#include "tests/catch.h"
#include "tests/synthetic.h"

namespace lockstep {
namespace {

/// Hosts of one worker and one server each, 1 GB/s and 5 us to a switch.
Scenario over_network(int workers) {
  Scenario scenario;
  scenario.name = "servers";
  scenario.model = "two_layers";
  scenario.batch_per_worker = 32;
  scenario.workers = {workers};
  scenario.strategy.kind = "parameter_server";
  scenario.iterations = 12;
  scenario.noise = false;
  scenario.platform.network = NetworkOptions{.bandwidth = {1'000'000'000}, .latency = us(5)};
  return scenario;
}

/// Of 4 MiB, `shares` of them on a link.
Time flow(std::int64_t shares) {
  const Rate rate = to_rate(tcp_payload({1'000'000'000}, std::nullopt));
  return Time::picoseconds(flow_time(4 << 20, rate / shares));
}

ResultPoint point(const Scenario& scenario, const Calibration& calibration = cpu_calibration()) {
  return simulate(scenario, calibration).points.at(0);
}

TEST_CASE("a synchronous step over a network, by hand", "[servers]") {
  // two_layers() on cores: forward and backward 600 us. A copy takes 10 us a MiB: gradients into
  // two messages 80 us. Each worker sends 4 MiB to each of two servers: two flows share its link
  // and each server's. The second gradient is added in 40 us (the copy's table), the optimizer's
  // 50 us are halved. Back the same way, and 80 us to unpack. 10 us of latency each way.
  Scenario scenario = over_network(2);
  scenario.strategy.servers = 2;
  const ResultPoint two = point(scenario);
  CHECK(two.strategy == "parameter_server");
  const Time step = us(600 + 80 + 10 + 40 + 25 + 10 + 80) + flow(2) * 2;
  CHECK(two.step.p50 == step);
  CHECK(two.step.p10 == two.step.p90);
  CHECK(two.throughput == Approx(64 / step.seconds()));
  CHECK(two.breakdown.compute == us(600 + 80 + 80));
  CHECK(two.breakdown.exposed == us(20) + flow(2) * 2);
  CHECK(two.breakdown.waiting == us(65));
  CHECK(two.breakdown.step() == step);
  CHECK(two.basis == Basis::extrapolated);
  REQUIRE(two.buckets.size() == 2);
  CHECK(two.buckets[1].bytes == Bytes{4 << 20});
  CHECK(two.buckets[1].ready == us(600));
  CHECK(two.buckets[1].launch == us(680));
  CHECK(two.buckets[1].done == step - us(80));
  REQUIRE(two.servers);
  CHECK(two.servers->staleness == std::vector<StalenessCount>{{0, 2 * 2 * 10}});
  REQUIRE(two.servers->traffic.size() == 4);
  for (const ProcessTraffic& process : two.servers->traffic) {
    CHECK(process.out == Bytes{8 << 20});  // of a worker to both, of a server from both
    CHECK(process.in == Bytes{8 << 20});
    CHECK(process.out_busy == Approx(flow(2).seconds() / step.seconds()).epsilon(0.001));
  }
  CHECK(two.servers->traffic[3].process == "server 1");
}

TEST_CASE("an asynchronous server is shared in turns, and never faster than its link",
          "[servers]") {
  Scenario scenario = over_network(2);
  scenario.strategy.staleness = std::nullopt;
  double last = 0;
  for (const int workers : {2, 4, 8, 16}) {
    scenario.workers = {workers};
    const ResultPoint many = point(scenario);
    REQUIRE(many.servers);
    CHECK(mean_staleness(many.servers->staleness) == Approx(workers - 1).margin(0.15));
    CHECK(many.throughput >= last * 0.999);
    last = many.throughput;
    // 8 MiB for each 32 samples.
    const Time message = flow(1) * 2;
    CHECK(many.throughput <= 32 / message.seconds() * 1.0001);
    CHECK(many.servers->traffic.back().in_busy <= 1);
  }
  // Gradients that share the link arrive together, and so do the answers: its two directions take
  // turns, more or less.
  CHECK(last > 0.5 * 32 / (flow(1) * 2).seconds());
}

TEST_CASE("who is bound waits for the slow worker, who is free does not", "[servers]") {
  Scenario scenario = over_network(3);
  scenario.stragglers = {{.worker = 2, .slowdown = Factor::of(200)}};
  scenario.strategy.staleness = std::nullopt;
  const double free = point(scenario).throughput;
  scenario.strategy.staleness = 3;
  const double bound = point(scenario).throughput;
  scenario.strategy.staleness = 0;
  const ResultPoint synchronous = point(scenario);
  CHECK(free > 3 * bound);
  CHECK(bound >= synchronous.throughput * 0.999);
  CHECK(synchronous.step.p50 > us(120'000));
}

TEST_CASE("one host: messages as they were measured, and cores that all share", "[servers]") {
  Calibration calibration = cpu_calibration();
  CollectiveTable table = collective_table("send_recv", 2, 20);  // 20 us, 10 GB/s
  table.backend = "gloo";
  calibration.collectives.push_back(table);
  calibration.origin.machine.cores = 16;
  calibration.cores.clear();
  Scenario scenario = over_network(2);
  scenario.platform = {};
  const ResultPoint synchronous = point(scenario, calibration);
  // 600 + 80, both gradients of 8 MiB through the server's one thread, add 80, apply 50, back, 80.
  const Time message = Time::picoseconds((8 << 20) * 100);
  const Time step = us(600 + 80 + 20 + 80 + 50 + 20 + 80) + message * 4;
  CHECK(synchronous.step.p50.us() == Approx(step.us()).epsilon(1e-6));
  // Of a link that they share, two senders want half a core each.
  calibration.origin.machine.cores = 2;
  CHECK(point(scenario, calibration).step.p50.us() == Approx(step.us()).epsilon(1e-6));
  // On one core everything but the server's own work takes turns.
  calibration.origin.machine.cores = 1;
  const Time turns = us(2 * (600 + 80) + 20 + 80 + 50 + 20 + 2 * 80) + message * 8;
  CHECK(point(scenario, calibration).step.p50.us() == Approx(turns.us()).epsilon(1e-6));
}

TEST_CASE("what a calibration does not know of servers is said", "[servers]") {
  Scenario scenario = over_network(2);
  scenario.strategy.servers = 3;
  CHECK_THROWS_WITH(point(scenario), Contains("3 servers cannot share 2 parameters"));
  scenario = over_network(2);
  scenario.platform = {};
  CHECK_THROWS_WITH(point(scenario), Contains("no messages over Gloo"));
  scenario = over_network(2);
  CHECK_THROWS_WITH(point(scenario, gpu_calibration()), Contains("server_rate: 4GB/s"));
  scenario.strategy.server_rate = {4'000'000'000};
  CHECK(point(scenario, gpu_calibration()).throughput > 0);
  scenario.platform.network->measured = true;
  CHECK_THROWS_AS(point(scenario), InputError);
  scenario = over_network(600);
  scenario.model = "with_norm";
  scenario.strategy.servers = 3;
  CHECK_THROWS_WITH(point(scenario), Contains("too many ways"));
}

TEST_CASE("a timeline shows workers and the servers behind them", "[servers]") {
  const Timeline timeline = simulate_step(over_network(2), cpu_calibration(), 2);
  std::uint32_t most = 0;
  for (const Span& span : timeline) {
    CHECK(span.start >= Time{});
    most = std::max(most, span.worker);
  }
  CHECK(most == 2);
  CHECK_THAT(to_table(simulate(over_network(2), cpu_calibration())),
             Contains("Staleness of updates"));
}

}  // namespace
}  // namespace lockstep
