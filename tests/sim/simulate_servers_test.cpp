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

TEST_CASE("a synchronous step waits for the worker that stops", "[servers]") {
  // Draws of iterations 3 to 12 count: 3, 7 and 11 of them stop for 100 ms. Where only worker 1
  // does, its 8 MiB come when the other's have long been there, and have the link to themselves.
  Scenario scenario = over_network(2);
  const ResultPoint before = point(scenario);
  const Time alone = flow(1) * 2;
  const Variability pause{.kind = Variability::Kind::periodic, .every = 4, .high = 1, .low = 0};
  for (const StepPart part : {StepPart::step, StepPart::forward, StepPart::backward}) {
    for (const int worker : {1, kEveryWorker}) {
      scenario.stragglers = {
          {.worker = worker, .delay = us(100'000), .part = part, .delay_varies = pause}};
      const ResultPoint paused = point(scenario);
      CHECK(paused.step.p50 == before.step.p50);
      const Time longer = us(100'000) - (worker == 1 ? alone : Time{});
      CHECK((paused.step.mean - before.step.mean).us() == Approx(0.3 * longer.us()));
      CHECK(paused.breakdown.step() == paused.step.mean);
    }
  }
  scenario.stragglers = {{.worker = 1, .slowdown = Factor::of(2), .delay = us(100'000)}};
  const ResultPoint constant = point(scenario);  // computing takes 600 us more
  CHECK(constant.step.p10 == constant.step.p90);
  CHECK((constant.step.p50 - before.step.p50).us() == Approx((us(100'600) - alone).us()));
}

TEST_CASE("free workers pass by the one that stops", "[servers]") {
  // Links that hold nobody up: steps of a millisecond, of worker 1 of three.
  Scenario scenario = over_network(3);
  scenario.platform.network->bandwidth = {100'000'000'000};
  scenario.strategy.staleness = std::nullopt;
  scenario.iterations = 40;
  const ResultPoint equal = point(scenario);
  scenario.stragglers = {{.worker = 1, .delay = us(2000), .part = StepPart::forward}};
  const ResultPoint late = point(scenario);
  CHECK(late.throughput < 0.9 * equal.throughput);
  CHECK(late.throughput > 0.6 * equal.throughput);
  REQUIRE(late.servers);
  CHECK(late.servers->staleness.back().staleness > equal.servers->staleness.back().staleness);
  scenario.strategy.staleness = 0;
  CHECK(point(scenario).throughput < 0.7 * late.throughput);
}

TEST_CASE("drawn stragglers with servers: the same on any number of threads", "[servers]") {
  Scenario scenario = over_network(2);
  scenario.workers = {2, 3, 4};
  scenario.iterations = 60;
  using Kind = Variability::Kind;
  for (const Variability& varies :
       {Variability{.kind = Kind::log_normal, .sigma = 0.5},
        Variability{.kind = Kind::pareto, .shape = 2.5},
        Variability{.kind = Kind::periodic, .every = 5, .high = 9, .low = 0, .aligned = false},
        Variability{.kind = Kind::periodic, .period = us(100'000), .aligned = false},
        Variability{.kind = Kind::samples, .values = {0, 1, 5}}}) {
    for (const auto staleness : {std::optional<std::int64_t>(0), std::optional<std::int64_t>()}) {
      scenario.strategy.staleness = staleness;
      scenario.stragglers = {{.worker = kEveryWorker, .delay = us(5000), .delay_varies = varies}};
      const Prediction one = simulate(scenario, cpu_calibration(), 1);
      CHECK(simulate(scenario, cpu_calibration(), 4) == one);
      for (const ResultPoint& each : one.points) {
        CHECK(each.step.p10 < each.step.p90);
        CHECK(each.breakdown.compute > us(760));  // the delays are in it
      }
    }
  }
}

TEST_CASE("no bound on staleness is never slower than one, whatever is drawn", "[servers]") {
  Scenario scenario = over_network(3);
  scenario.iterations = 200;
  scenario.stragglers = {{.worker = kEveryWorker,
                          .delay = us(20'000),
                          .slowdown_varies = {.kind = Variability::Kind::log_normal, .sigma = 1},
                          .delay_varies = {.kind = Variability::Kind::log_normal, .sigma = 1}}};
  double last = 0;
  for (const auto staleness : {std::optional<std::int64_t>(0), std::optional<std::int64_t>(1),
                               std::optional<std::int64_t>(4), std::optional<std::int64_t>()}) {
    scenario.strategy.staleness = staleness;
    const double throughput = point(scenario).throughput;
    CHECK(throughput > last * 0.99);
    last = throughput;
  }
}

TEST_CASE("one GPU and its servers, with what was measured of them", "[servers]") {
  // The first launch takes 10 us, computing 600, gathering 8 MiB of gradients 80; two messages of
  // 4 MiB at 1 us a 4096 bytes each way to and from the host: 2 x 1024.
  Calibration calibration = gpu_calibration();
  const auto straight = [](const char* what, std::int64_t us_of_4mib) {
    return CopyTable{what, {{Bytes{4 << 20}, 1, us(us_of_4mib), {}}}};
  };
  for (const CopyTable& table :
       {straight("device_to_host", 1024), straight("host_to_device", 1024),
        straight("server_add", 300), straight("server_apply", 700), straight("server_copy", 400)}) {
    calibration.copies.push_back(table);
  }
  CollectiveTable messages = collective_table("send_recv", 2, 20);
  messages.backend = "gloo";
  calibration.collectives.push_back(messages);
  Scenario scenario = over_network(1);
  scenario.platform = {};
  scenario.strategy.servers = 2;
  const ResultPoint alone = point(scenario, calibration);
  CHECK(alone.strategy == "parameter_server");
  CHECK(alone.basis == Basis::measured);
  // Both messages share the worker's thread: 8 MiB at 100 ps a byte, each way.
  const Time messages_take = Time::picoseconds((8 << 20) * 100) * 2 + us(40);
  const Time copies = us(2 * (80 + 2 * 1024));
  CHECK(alone.step.p50.us() ==
        Approx((us(610) + copies + messages_take + us(700)).us()).epsilon(1e-6));
  // Free, the server copies what it sends.
  scenario.strategy.staleness = std::nullopt;
  CHECK(point(scenario, calibration).step.p50.us() ==
        Approx((us(610) + copies + messages_take + us(1100)).us()).epsilon(1e-6));
  // Two workers are added up.
  scenario.workers = {2};
  scenario.strategy.staleness = 0;
  CHECK(point(scenario, calibration).breakdown.waiting >= us(1000));
  CHECK(simulate(scenario, calibration).points[0].speedup < 2);
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
