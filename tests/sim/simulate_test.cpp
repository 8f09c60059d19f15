#include "sim/simulate.h"

#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/report/table.h"
#include "tests/catch.h"
#include "tests/synthetic.h"

namespace lockstep {
namespace {

Scenario small_scenario() {
  Scenario scenario;
  scenario.name = "small";
  scenario.model = "two_layers";
  scenario.batch_per_worker = 32;
  scenario.workers = {1, 2, 4};
  scenario.strategy.kind = "ddp";
  scenario.iterations = 12;
  scenario.noise = false;
  return scenario;
}

Calibration without_interference(Calibration calibration) {
  calibration.interference = {};
  return calibration;
}

TEST_CASE("one point, by hand", "[simulate]") {
  // two_layers() at 32 on two GPUs. Copies of 4 MiB, on the line from 10 us at 1 MiB to 640 us at
  // 64 MiB: 40 us, 5 us of the host. All-reduce of 4 MiB: 20 us + 4194304 x 100 ps = 439.4304 us.
  // Host: a 10, b 20, b' 30, hook 2 and copy 37, ...
  // Compute: a 10-110, b 110-210, b' 210-410, copy 410-450, a' 450-650, copy 650-690.
  // Reduces: 450-889.4304, 889.4304-1328.8608; optimizer until 1378.8608.
  // single, one worker: 10 + 600 + 50 = 660.
  const Scenario scenario = small_scenario();
  const Calibration calibration = without_interference(gpu_calibration());
  const Prediction prediction = simulate(scenario, calibration);
  REQUIRE(prediction.points.size() == 3);
  const ResultPoint& one = prediction.points[0];
  CHECK(one.strategy == "single");
  CHECK(one.step.p50 == us(660));
  CHECK(one.speedup == 1);
  CHECK(one.throughput == Approx(32 / 660e-6));
  CHECK(one.basis == Basis::measured);
  const ResultPoint& two = prediction.points[1];
  CHECK(two.strategy == "ddp");
  CHECK(two.step.p50 == Time::nanoseconds(1'378'861) - Time::picoseconds(200));
  CHECK(two.step.p10 == two.step.p90);
  CHECK(two.speedup == Approx(2 * 660 / 1378.8608));
  CHECK(two.efficiency == Approx(660 / 1378.8608));
  CHECK(two.breakdown.compute == us(730));
  CHECK(two.breakdown.host == us(10));
  CHECK(two.breakdown.step() == two.step.p50);
  REQUIRE(two.buckets.size() == 2);
  CHECK(two.buckets[0].launch == us(450));
  CHECK(two.uncertainty.repeat == 0.01);
  CHECK(two.uncertainty.drawn == 0);
  CHECK(two.uncertainty.fit > 0);
  CHECK_FALSE(two.host_bound);
}

TEST_CASE("the answer is the same on any number of threads", "[simulate]") {
  Scenario scenario = small_scenario();
  scenario.noise = true;
  scenario.workers = {1, 2, 3, 4, 5, 6};
  const Calibration calibration = gpu_calibration();
  const Prediction alone = simulate(scenario, calibration, 1);
  for (unsigned threads : {2U, 3U, 8U}) CHECK(simulate(scenario, calibration, threads) == alone);
  scenario.seed = 2;
  CHECK_FALSE(simulate(scenario, calibration, 1) == alone);
}

TEST_CASE("noise spreads the steps and leaves the breakdown whole", "[simulate]") {
  Scenario scenario = small_scenario();
  scenario.noise = true;
  scenario.iterations = 200;
  const Prediction prediction = simulate(scenario, gpu_calibration());
  for (const ResultPoint& point : prediction.points) {
    CHECK(point.step.p10 < point.step.p50);
    CHECK(point.step.p50 < point.step.p90);
    CHECK(point.uncertainty.drawn > 0.002);
    CHECK(point.uncertainty.drawn < 0.03);
  }
}

TEST_CASE("a graph's host never bounds it, an eager one's can", "[simulate]") {
  Calibration calibration = without_interference(gpu_calibration());
  for (Profile& profile : calibration.profiles) {
    for (Layer& each : profile.layers) each.forward.host = each.backward.host = us(1000);
  }
  Scenario scenario = small_scenario();
  scenario.workers = {1};
  const ResultPoint eager = simulate(scenario, calibration).points[0];
  // The host: 4 x 1000, the last launch at 4000; then a' 200, optimizer 50. Busy: 4010.
  CHECK(eager.step.p50 == us(4250));
  CHECK(eager.host_busy == Approx(4010.0 / 4250));
  CHECK(eager.host_bound);
  scenario.graph = true;
  const ResultPoint graph = simulate(scenario, calibration).points[0];
  CHECK(graph.step.p50 == us(650));
  CHECK_FALSE(graph.host_bound);
  CHECK(graph.basis == Basis::extrapolated);  // no profile was measured as a graph
}

TEST_CASE("batches between measured ones are interpolated, layer by layer", "[simulate]") {
  Scenario scenario = small_scenario();
  scenario.workers = {1};
  scenario.batch_per_worker = 24;
  const ResultPoint between = simulate(scenario, gpu_calibration()).points[0];
  // 3/4 of 600 us, the optimizer as it is: 10 + 450 + 50.
  CHECK(between.step.p50 == us(510));
  CHECK(between.basis == Basis::interpolated);
  scenario.batch_per_worker = 128;
  const ResultPoint beyond = simulate(scenario, gpu_calibration()).points[0];
  CHECK(beyond.step.p50 == us(10 + 2400 + 50));
  CHECK(beyond.basis == Basis::extrapolated);
}

TEST_CASE("strong scaling shares the batch and compares with all of it on one", "[simulate]") {
  Scenario scenario = small_scenario();
  scenario.batch_per_worker.reset();
  scenario.total_batch = 64;
  const Prediction prediction = simulate(scenario, without_interference(gpu_calibration()));
  CHECK_FALSE(prediction.weak);
  // One worker: 10 + 1200 + 50. Two: as above at 32.
  CHECK(prediction.points[0].step.p50 == us(1260));
  CHECK(prediction.points[1].batch_per_worker == 32);
  CHECK(prediction.points[1].speedup == Approx(1260 / 1378.8608));
  CHECK(prediction.points[2].batch_per_worker == 16);
}

TEST_CASE("workers on cores slow each other by the measured table", "[simulate]") {
  Scenario scenario = small_scenario();
  scenario.strategy.kind = "single";
  scenario.workers = {1, 2, 4};
  const Prediction prediction = simulate(scenario, cpu_calibration());
  // 650 us alone; 5 % more with two; four on two cores share them: 1.05 x 2.
  CHECK(prediction.points[0].step.p50 == us(650));
  CHECK(prediction.points[1].step.p50.us() == Approx(650 * 1.05));
  CHECK(prediction.points[2].step.p50.us() == Approx(650 * 1.05 * 2));
  CHECK(prediction.points[1].basis == Basis::interpolated);
  CHECK(prediction.points[2].basis == Basis::extrapolated);
}

TEST_CASE("a faster network never makes a step longer", "[simulate]") {
  Scenario scenario = small_scenario();
  scenario.workers = {8};
  Time before = Time::milliseconds(1'000'000);
  for (std::int64_t megabytes : {10, 30, 100, 300, 1000, 3000, 30'000}) {
    scenario.platform.network =
        NetworkOptions{Bandwidth{megabytes * 1'000'000}, Time::microseconds(5)};
    const Time step = simulate(scenario, cpu_calibration()).points[0].step.p50;
    CHECK(step <= before);
    CHECK(step >= us(650));
    before = step;
  }
}

TEST_CASE("above 64 workers the formula goes on where the step-by-step ring stops", "[simulate]") {
  Scenario scenario = small_scenario();
  scenario.workers = {64, 65};
  scenario.platform.network = NetworkOptions{Bandwidth{1'000'000'000}, Time::microseconds(5)};
  const Prediction prediction = simulate(scenario, cpu_calibration());
  const double stepwise = prediction.points[0].step.p50.seconds();
  const double formula = prediction.points[1].step.p50.seconds();
  CHECK(formula > stepwise);
  CHECK(formula < 1.03 * stepwise);
}

TEST_CASE("a large run's breakdown adds up to its mean step, too", "[simulate]") {
  Scenario scenario = small_scenario();
  scenario.noise = true;
  scenario.workers = {3, 2048};
  scenario.iterations = 30;  // more spans than are kept of all workers
  for (const ResultPoint& point : simulate(scenario, gpu_calibration()).points) {
    CHECK(point.breakdown.step() == point.step.mean);
    CHECK(point.uncertainty.drawn > 0);
  }
}

TEST_CASE("every number of workers has an answer over a network", "[simulate]") {
  Scenario scenario = small_scenario();
  scenario.model = "with_norm";
  scenario.iterations = 2;
  scenario.workers.clear();
  for (int n = 2; n <= 66; ++n) scenario.workers.push_back(n);
  scenario.platform.network = NetworkOptions{{3'125'000'000}, us(5)};
  Calibration calibration = gpu_calibration();
  // Small collectives that are latency alone.
  for (CollectiveTable& table : calibration.collectives) {
    for (CollectivePoint& point : table.points) point.p50 = std::max(point.p50, us(40));
  }
  for (const ResultPoint& point : simulate(scenario, calibration).points) {
    CHECK(point.step.mean > us(660));
  }
}

TEST_CASE("a network whose times would leave the clock is refused", "[simulate]") {
  Scenario scenario = small_scenario();
  for (const int workers : {2, 64, 65, 4096}) {
    scenario.workers = {workers};
    scenario.platform.network = NetworkOptions{{1}, us(5)};
    CHECK_THROWS_WITH(simulate(scenario, gpu_calibration()),
                      Contains("platform.network.bandwidth: 1 B/s is too slow"));
  }
  // 8 MiB at 10 kB/s: 839 s, and 10'000 times that is beyond the horizon.
  scenario.workers = {2};
  scenario.iterations = 10'000;
  scenario.noise = true;
  scenario.platform.network = NetworkOptions{{10'000}, Time::milliseconds(1000)};
  CHECK_THROWS_WITH(simulate(scenario, gpu_calibration()), Contains("53 days"));
}

TEST_CASE("what a calibration cannot answer is said", "[simulate]") {
  Scenario scenario = small_scenario();
  scenario.model = "three_layers";
  CHECK_THROWS_WITH(
      simulate(scenario, gpu_calibration()),
      Contains("'three_layers' was not measured") && Contains("two_layers, with_norm"));
  scenario = small_scenario();
  scenario.precision = "bf16";
  CHECK_THROWS_WITH(simulate(scenario, gpu_calibration()), Contains("measured are fp32"));
  scenario = small_scenario();
  scenario.graph = true;
  CHECK_THROWS_WITH(simulate(scenario, cpu_calibration()), Contains("graph: workers on cores"));
  Calibration alone = gpu_calibration();
  alone.collectives.clear();
  CHECK_THROWS_AS(simulate(small_scenario(), alone), InputError);
  CHECK_THROWS_AS(simulate(small_scenario(), Calibration{}), InputError);
}

TEST_CASE("the timeline of a step starts at zero and shows every worker", "[simulate]") {
  const Timeline step = simulate_step(small_scenario(), gpu_calibration(), 3);
  Time earliest = us(1);
  std::vector<int> spans(3);
  for (const Span& span : step) {
    REQUIRE(span.worker < 3);
    ++spans[span.worker];
    earliest = std::min(earliest, span.start);
    CHECK(span.end > span.start);
  }
  CHECK(earliest == Time{});
  // Issues: 4 layers, 2 copies, 2 calls, optimizer; as many on the device, less the calls; 2
  // reduces.
  CHECK(spans == std::vector<int>{18, 18, 18});
}

/// cpu_calibration() whose all-reduces on one host take 20 us in all and 100 ps a byte, over Gloo.
Calibration gloo_calibration() {
  Calibration calibration = without_interference(cpu_calibration());
  for (CollectiveTable& table : calibration.collectives) {
    table.backend = "gloo";
    for (CollectivePoint& point : table.points) point.host = Time{};
  }
  return calibration;
}

Scenario on_hosts(const std::string& strategy, std::vector<int> workers) {
  Scenario scenario = small_scenario();
  scenario.strategy.kind = strategy;
  scenario.workers = std::move(workers);
  scenario.platform.network = NetworkOptions{.bandwidth = {125'000'000}};
  return scenario;
}

TEST_CASE("all_reduce over two hosts, by hand", "[simulate]") {
  // Compute 600 us, then 4 MiB twice, then 50 us. Gloo's ring: a message takes 20 us / 2 of
  // latency. 1 Gbit/s carries 1448 of 1514 bytes: 119550858 B/s. Segments of 1 MiB, two each way,
  // flow one behind the other: 10 us and 2 MiB at that rate, twice: 2 (10 + 17541.96) us.
  const Prediction prediction = simulate(on_hosts("all_reduce", {2}), gloo_calibration());
  const ResultPoint& point = prediction.points[0];
  CHECK(point.step.p50.us() == Approx(650 + 2 * 2 * (10 + 2097152 / 119.550858)).epsilon(1e-6));
  CHECK(point.basis == Basis::extrapolated);
  CHECK(point.breakdown.exposed.us() == Approx(2 * 2 * (10 + 2097152 / 119.550858)).epsilon(1e-6));
  CHECK(point.buckets.size() == 2);
  // With jumbo frames 8948 of 9014 bytes are payload.
  Scenario jumbo = on_hosts("all_reduce", {2});
  jumbo.platform.network->mtu = Bytes{9000};
  CHECK(simulate(jumbo, gloo_calibration()).points[0].step.p50.us() ==
        Approx(650 + 2 * 2 * (10 + 2097152 / (125.0 * 8948 / 9014))).epsilon(1e-6));
}

TEST_CASE("hosts that share two cores take turns at messages that all send at once", "[simulate]") {
  const auto step = [](const std::string& strategy, int workers, bool emulated) {
    Scenario scenario = on_hosts(strategy, {workers});
    scenario.compute = Compute::replay;
    scenario.platform.network->latency = us(5);
    scenario.platform.emulated = emulated;
    scenario.platform.collective = CollectiveModel{.table = false, .all_reduce = Algorithm::ring};
    return simulate(scenario, gloo_calibration()).points[0].step.p50;
  };
  CHECK(step("all_reduce", 2, true) == step("all_reduce", 2, false));
  // Two all-reduces in six rounds, each of a message's 20 us / 6 and twice 5 us on its way: four
  // hosts on two cores take all that twice.
  CHECK((step("all_reduce", 4, true) - step("all_reduce", 4, false)).us() ==
        Approx(2 * 6 * (20.0 / 6 + 10)).epsilon(1e-6));
  CHECK(step("gather_scatter", 4, true) == step("gather_scatter", 4, false));
}

TEST_CASE("gather_scatter over hosts goes through rank 0's link", "[simulate]") {
  // Everybody's 4 MiB to rank 0 and back, twice: (n-1) times the bytes each way, one after the
  // other. Messages and additions of some us are left out of the comparison.
  const Prediction prediction = simulate(on_hosts("gather_scatter", {2, 3, 4}), gloo_calibration());
  for (const ResultPoint& point : prediction.points) {
    const double bytes = 2.0 * 2.0 * (4 << 20) * (point.workers - 1);
    CHECK(point.step.p50.us() == Approx(650 + bytes / 119.550858).epsilon(0.02));
  }
}

TEST_CASE("on a slow network the strategies come in the order of the lab report", "[simulate]") {
  const auto step = [](const std::string& strategy, int workers) {
    return simulate(on_hosts(strategy, {workers}), gloo_calibration()).points[0].step.p50;
  };
  CHECK(step("ddp", 4) < step("all_reduce", 4));
  CHECK(step("all_reduce", 4) < step("gather_scatter", 4));
  CHECK(step("gather_scatter", 2) < step("gather_scatter", 4));
}

TEST_CASE("one slow link slows all, whichever host has it", "[simulate]") {
  Scenario scenario = on_hosts("all_reduce", {3});
  const Time fast = simulate(scenario, gloo_calibration()).points[0].step.p50;
  std::vector<Time> slow;
  for (int host = 0; host < 3; ++host) {
    scenario.platform.network->slow_links = {{host, {25'000'000}}};
    slow.push_back(simulate(scenario, gloo_calibration()).points[0].step.p50);
  }
  CHECK(slow[0].us() == Approx(650 + 5 * (fast.us() - 650)).epsilon(0.02));
  CHECK(slow[1].us() == Approx(slow[0].us()).epsilon(0.001));
  CHECK(slow[2].us() == Approx(slow[0].us()).epsilon(0.001));
}

TEST_CASE("every algorithm answers for any number of workers", "[simulate]") {
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::gloo_ring, Algorithm::recursive_doubling,
        Algorithm::halving_doubling, Algorithm::tree, Algorithm::hierarchical}) {
    Scenario scenario = on_hosts("ddp", {2, 3, 5, 8, 100});
    scenario.platform.collective = CollectiveModel{.table = false, .all_reduce = algorithm};
    for (const ResultPoint& point : simulate(scenario, gloo_calibration()).points) {
      CHECK(point.breakdown.exposed > Time{});
    }
  }
}

TEST_CASE("hierarchical all-reduces in hosts of four", "[simulate]") {
  const auto exposed = [](Algorithm algorithm, int workers) {
    Scenario scenario = on_hosts("ddp", {workers});
    scenario.platform.devices_per_host = 4;
    scenario.platform.network->latency = us(5000);
    scenario.platform.collective = CollectiveModel{.table = false, .all_reduce = algorithm};
    return simulate(scenario, gloo_calibration()).points[0].breakdown.exposed;
  };
  // Beyond 64 workers the formula stands for the steps: the 17th host adds two messages to the
  // 30 that go between hosts.
  const double steps = exposed(Algorithm::hierarchical, 64).us();
  const double by_formula = exposed(Algorithm::hierarchical, 68).us();
  CHECK(by_formula > steps);
  CHECK(by_formula < 1.07 * steps);
  // Messages of 10 ms: 30 of them against a ring's 126.
  CHECK(2 * steps < exposed(Algorithm::ring, 64).us());
  // A host that is not full: trees in the hosts.
  CHECK(exposed(Algorithm::hierarchical, 63) > Time{});
}

TEST_CASE("measured networks use tables across hosts, and say so where there are none",
          "[simulate]") {
  Scenario scenario = on_hosts("all_reduce", {2, 4});
  scenario.platform.network = NetworkOptions{.bandwidth = {}, .measured = true};
  Calibration calibration = gloo_calibration();
  CHECK_THROWS_WITH(simulate(scenario, calibration), Contains("no collectives across hosts"));
  for (int hosts : {2, 4}) {
    CollectiveTable table = collective_table("all_reduce", hosts, 500);
    table.topology = std::to_string(hosts) + " hosts";
    for (CollectivePoint& point : table.points) point.host = Time{};
    calibration.collectives.push_back(table);
  }
  const Prediction prediction = simulate(scenario, calibration);
  // 500 us and 4 MiB at 100 ps a byte, twice.
  for (const ResultPoint& point : prediction.points) {
    CHECK(point.step.p50.us() == Approx(650 + 2 * (500 + 419.4304)));
    CHECK(point.basis == Basis::measured);
  }
  // On one host they are not used.
  scenario.platform.network.reset();
  CHECK(simulate(scenario, calibration).points[0].step.p50.us() <
        prediction.points[0].step.p50.us());
}

TEST_CASE("a delay holds up the part of the step it is in", "[simulate]") {
  // Two workers, all_reduce on one host: 600 us of compute, worker 1 stops for 1 ms before it. The
  // others wait for it, wherever it stops.
  Scenario scenario = small_scenario();
  scenario.strategy.kind = "all_reduce";
  scenario.workers = {2};
  const Time before = simulate(scenario, gloo_calibration()).points[0].step.p50;
  for (const StepPart part :
       {StepPart::step, StepPart::input, StepPart::forward, StepPart::backward}) {
    scenario.stragglers = {{.worker = 1, .delay = us(1000), .part = part}};
    CHECK(simulate(scenario, gloo_calibration()).points[0].step.p50 == before + us(1000));
  }
  // A slow-down of the same worker does not stretch the delay. Two workers on the two cores take
  // 1.05 times 650 us to compute, this one half of that longer.
  scenario.stragglers[0].slowdown = Factor::of(1.5);
  CHECK(simulate(scenario, gloo_calibration()).points[0].step.p50.us() ==
        Approx(before.us() + 1000 + 1.05 * 325));
}

TEST_CASE("a replayed worker neither slows beside others nor varies", "[simulate]") {
  Scenario scenario = small_scenario();
  scenario.noise = true;
  scenario.workers = {2};
  Calibration calibration = cpu_calibration();
  scenario.compute = Compute::replay;
  const Prediction replayed = simulate(scenario, calibration);
  CHECK(replayed.points[0].step.p10 == replayed.points[0].step.p90);
  scenario.noise = false;
  scenario.compute = Compute::real;
  CHECK(simulate(scenario, without_interference(calibration)).points[0].step.p50 ==
        replayed.points[0].step.p50);
  CHECK(simulate(scenario, calibration).points[0].breakdown.compute >
        replayed.points[0].breakdown.compute);
}

TEST_CASE("an epoch with input and without, and peak memory", "[simulate]") {
  // 660 us a step on one GPU; a batch takes 2 ms to load, 100 us to copy. One loader: a step every
  // 2 ms; four loaders: 500 us each, hidden but for what the copy engine does not hide (nothing).
  Scenario scenario = small_scenario();
  scenario.workers = {1};
  scenario.dataset = DatasetOptions{.samples = 3200, .drop_last = true};
  Calibration calibration = gpu_calibration();
  for (Profile& profile : calibration.profiles) profile.peak = Bytes{std::int64_t{3} << 30};
  const ResultPoint unknown = simulate(scenario, calibration).points[0];
  CHECK(unknown.epoch_without_input == us(660) * 100);
  CHECK(unknown.epoch_with_input == Time{});
  CHECK(unknown.peak == Bytes{std::int64_t{3} << 30});
  CHECK_THAT(to_table(simulate(scenario, calibration)), Contains("3.00 GiB"));

  scenario.input = {.on = false, .workers = 1, .load = us(2000), .copy = us(100)};
  const ResultPoint one = simulate(scenario, calibration).points[0];
  CHECK(one.epoch_without_input == us(660) * 100);
  CHECK(one.epoch_with_input == us(2000) * 100);
  scenario.input.workers = 4;
  scenario.input.on = true;
  const ResultPoint four = simulate(scenario, calibration).points[0];
  CHECK(four.epoch_with_input == us(660) * 100);
  CHECK(four.epoch_without_input == us(660) * 100);
  // Whoever loads for itself waits for it: 2 ms, then the copy, then the step.
  scenario.input.workers = 0;
  const ResultPoint alone = simulate(scenario, calibration).points[0];
  CHECK(alone.step.p50 == us(2000 + 100 + 650));
  CHECK(alone.breakdown.input > Time{});
}

TEST_CASE("copies to the device come from their table where the profile has none", "[simulate]") {
  Scenario scenario = small_scenario();
  scenario.workers = {1};
  scenario.input.on = true;
  Calibration calibration = gpu_calibration();
  for (Profile& profile : calibration.profiles) profile.input_bytes = Bytes{1 << 20};
  calibration.copies.push_back({"host_to_device", {{Bytes{1 << 20}, 1, us(900), us(5)}}});
  // The copy of the next batch takes longer than the step.
  CHECK(simulate(scenario, calibration).points[0].step.p50 == us(900));
}

TEST_CASE("several workers go at the pace of the slowest host", "[simulate]") {
  // 1000 us of the host to launch anything. Rank 1's host takes twice as long: four launches of
  // 2000 us, the last backward's 200 us on the device, until 8200 us. Two all-reduces of 20 us and
  // 4 MiB at 100 ps a byte (439.43 us each) end at 9078.86, while the host launches them (2 x 20
  // us) and the optimizer, until 10040 us. That runs for 50 us: 10090 us. Alone a host is as fast
  // as the profile says: 5 x 1000 + 50 us.
  Calibration calibration = gpu_calibration();
  for (Profile& profile : calibration.profiles) {
    for (Layer& layer : profile.layers) layer.forward.host = layer.backward.host = us(1000);
    profile.optimizer.host = us(1000);
    profile.host_of_rank = {0.5, 2};
  }
  Scenario scenario = small_scenario();
  scenario.workers = {1, 2, 3};
  scenario.strategy.kind = "all_reduce";
  const Prediction prediction = simulate(scenario, calibration);
  CHECK(prediction.points.at(0).step.p50 == us(5050));
  CHECK(prediction.points.at(1).step.p50 == us(10090));
  CHECK(prediction.points.at(2).step.p50 == us(10090));  // ranks 0 and 2 have the same host
}

std::string refusal(const Scenario& scenario, const Calibration& calibration) {
  try {
    simulate(scenario, calibration, 1);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("data_parallel, one point by hand", "[simulate]") {
  // Two parameters of 2 MiB in one chunk: copies of 40 us. A broadcast of 4 MiB takes 15 us +
  // 4194304 x 100 ps = 434.4304 us, and so does a reduce, which was not measured. A scatter or
  // gather of nothing: one message of an all-reduce, 10 us. One thread launches both devices'
  // parts: 20 us. Scatter 20-30, copy 70, broadcast 504.4304, forward 704.4304, gather 714.4304,
  // scatter 724.4304, backward 1124.4304, copy 1164.4304, reduce 1598.8608, optimizer 1648.8608.
  Scenario scenario = small_scenario();
  scenario.strategy.kind = "data_parallel";
  scenario.workers = {1, 2, 3};
  Calibration calibration = without_interference(gpu_calibration());
  for (Profile& profile : calibration.profiles) {
    for (Layer& layer : profile.layers) {
      for (Parameter& parameter : layer.parameters) parameter.bytes = Bytes{2 << 20};
    }
  }
  const Prediction prediction = simulate(scenario, calibration);
  CHECK(prediction.points[0].strategy == "single");
  CHECK(prediction.points[0].step.p50 == us(660));
  const ResultPoint& two = prediction.points[1];
  CHECK(two.strategy == "data_parallel");
  CHECK(two.step.p50.seconds() == Approx(1648.8608e-6).epsilon(1e-8));
  CHECK(two.breakdown.step() == two.step.p50);
  CHECK(two.breakdown.compute == us(40 + 200 + 400 + 40 + 50));
  CHECK(two.breakdown.waiting + two.breakdown.idle == Time{});
  CHECK(two.basis == Basis::extrapolated);
  REQUIRE(two.buckets.size() == 1);
  // On three, 30 us launch the scatter, and a message is one of four of a ring, 5 us: ten more
  // once, five less three times.
  CHECK(prediction.points[2].step.p50.seconds() == Approx(1643.8608e-6).epsilon(1e-8));

  // A table of the reduce's own is preferred.
  for (const int workers : {2, 3}) {
    calibration.collectives.push_back(collective_table("reduce", workers, 115));
  }
  CHECK(simulate(scenario, calibration).points[1].step.p50.seconds() ==
        Approx(1748.8608e-6).epsilon(1e-8));
}

TEST_CASE("data_parallel needs GPUs of one host, no graph, and a sample for each", "[simulate]") {
  Scenario scenario = small_scenario();
  scenario.strategy.kind = "data_parallel";
  scenario.workers = {1, 4};
  CHECK_THAT(refusal(scenario, cpu_calibration()), Contains("is of cores"));
  scenario.graph = true;
  CHECK_THAT(refusal(scenario, gpu_calibration()), Contains("is no one graph"));
  scenario.graph = false;
  scenario.platform.devices_per_host = 2;
  CHECK_THAT(refusal(scenario, gpu_calibration()), Contains("4 workers are on several"));
  scenario.platform.devices_per_host = 4;
  scenario.batch_per_worker.reset();
  scenario.total_batch = 6;
  CHECK_THAT(refusal(scenario, gpu_calibration()),
             Contains("in shares of 2 nothing is left for worker 3 of 4"));
  scenario.total_batch = 130;
  CHECK(refusal(scenario, gpu_calibration()) == "accepted");
}

TEST_CASE("a published step scales the device and leaves the host", "[simulate]") {
  // two_layers() at 32, single: 10 us of launching, then 650 us of the device: twice as long on it
  // is 1310 us. At 64 the layers take 1200 us, the optimizer 50: 10 + 1250 f = 2510 at f = 2.
  Scenario scenario = small_scenario();
  scenario.workers = {1};
  scenario.step_times = {{.batch = 32, .time = us(1310)}, {.batch = 64, .time = us(2510)}};
  const Calibration calibration = without_interference(gpu_calibration());
  const ResultPoint at_32 = simulate(scenario, calibration).points.front();
  CHECK(at_32.step.p50 == us(1310));
  CHECK(at_32.basis == Basis::extrapolated);
  scenario.batch_per_worker = 48;
  CHECK(simulate(scenario, calibration).points.front().step.p50 == us((1310 + 2510) / 2));
  // Launching takes the host 10 + 4 x 10 + 10 us and more; no device makes the step shorter.
  scenario.step_times = {{.batch = 32, .time = us(30)}};
  CHECK_THROWS_WITH(simulate(scenario, calibration),
                    Contains("step_time: no profile takes 30.0 us"));
}

TEST_CASE("a stated link stands for the tables of a host", "[simulate]") {
  // As "one point, by hand", but an all-reduce of 4 MiB over 10 GB/s takes 2 x 5 us and
  // 4194304 x 100 ps: 429.4304 us instead of 439.4304. 450 + 2 x 429.4304 + 50 = 1358.8608.
  Scenario scenario = small_scenario();
  scenario.workers = {2};
  scenario.platform.device_link = {.bandwidth = {10'000'000'000}, .latency = us(5)};
  Calibration calibration = without_interference(gpu_calibration());
  CHECK(simulate(scenario, calibration).points.front().step.p50 ==
        Time::picoseconds(1'358'860'800));
  calibration.collectives.clear();
  CHECK(simulate(scenario, calibration).points.front().step.p50 ==
        Time::picoseconds(1'358'860'800));
}

}  // namespace
}  // namespace lockstep
