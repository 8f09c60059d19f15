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

}  // namespace
}  // namespace lockstep
