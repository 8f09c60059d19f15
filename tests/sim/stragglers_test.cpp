#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/simulate.h"
#include "tests/catch.h"
#include "tests/synthetic.h"

namespace lockstep {
namespace {

using Kind = Variability::Kind;

/// Two layers on cores, 650 us of work and two all-reduces.
Scenario on_cores(int workers) {
  Scenario scenario;
  scenario.name = "small";
  scenario.model = "two_layers";
  scenario.batch_per_worker = 32;
  scenario.workers = {workers};
  scenario.strategy.kind = "all_reduce";
  scenario.iterations = 13;
  scenario.noise = false;
  return scenario;
}

Calibration undisturbed() {
  Calibration calibration = cpu_calibration();
  calibration.interference = {};
  for (CollectiveTable& table : calibration.collectives) {
    for (CollectivePoint& point : table.points) point.host = Time{};
  }
  return calibration;
}

ResultPoint answer(const Scenario& scenario) {
  return simulate(scenario, undisturbed()).points.at(0);
}

TEST_CASE("a pause in one step of four costs a quarter of it", "[simulate]") {
  // Iterations 3, 7 and 11 of 1 to 12 stop for 1 ms; the others wait.
  Scenario scenario = on_cores(2);
  const Time before = answer(scenario).step.p50;
  const Variability pause{.kind = Kind::periodic, .every = 4, .high = 1, .low = 0};
  for (const StepPart part : {StepPart::step, StepPart::forward, StepPart::backward}) {
    for (const int worker : {1, kEveryWorker}) {
      scenario.stragglers = {
          {.worker = worker, .delay = us(1000), .part = part, .delay_varies = pause}};
      const ResultPoint point = answer(scenario);
      CHECK(point.step.p50 == before);
      CHECK(point.step.mean == before + us(250));
      CHECK(point.breakdown.step() == point.step.mean);
    }
  }
}

TEST_CASE("a delay beside a drawn slow-down is as long as it says", "[simulate]") {
  // Two workers on two cores take 1.05 times 650 us; worker 1 twice that, and 1 ms.
  Scenario scenario = on_cores(2);
  const Time before = answer(scenario).step.p50;
  scenario.stragglers = {
      {.worker = 1,
       .delay = us(1000),
       .slowdown_varies = {.kind = Kind::samples, .listed = true, .values = {2}}}};
  CHECK(answer(scenario).step.p50.us() == Approx(before.us() + 1000 + 1.05 * 650));
  // Two entries of one worker: 1.5 x 2 - 1 = twice more.
  scenario.stragglers.push_back({.worker = kEveryWorker, .slowdown = Factor::of(1.5)});
  CHECK(answer(scenario).step.p50.us() == Approx(before.us() + 1000 + 2 * 1.05 * 650));
}

TEST_CASE("on GPUs a drawn delay stops the host", "[simulate]") {
  Scenario scenario = on_cores(2);
  const Calibration gpus = gpu_calibration();
  for (const bool graph : {false, true}) {
    scenario.graph = graph;
    Calibration calibration = gpus;
    if (graph) {
      for (Profile& profile : calibration.profiles) profile.graph = true;
    }
    scenario.stragglers.clear();
    const Time before = simulate(scenario, calibration).points[0].step.p50;
    scenario.stragglers = {
        {.worker = 1,
         .delay = us(1000),
         .part = StepPart::step,
         .delay_varies = {.kind = Kind::samples, .listed = true, .values = {3}}}};
    CHECK(simulate(scenario, calibration).points[0].step.p50 == before + us(3000));
  }
}

TEST_CASE("on GPUs a delay of forward or backward keeps the device busy", "[simulate]") {
  // Eager, alone, not synchronised: the host (10 us a launch) is far ahead, so that a delay of the
  // host would be hidden; one of the device is not.
  Scenario scenario = on_cores(1);
  scenario.sync = Sync::none;
  scenario.noise = false;
  const Calibration gpus = gpu_calibration();
  const Time before = simulate(scenario, gpus).points[0].step.p50;
  for (const StepPart part : {StepPart::forward, StepPart::backward}) {
    for (const bool drawn : {false, true}) {
      scenario.stragglers = {{.worker = 0, .delay = us(300), .part = part}};
      if (drawn) {
        scenario.stragglers[0].delay_varies = {
            .kind = Kind::samples, .listed = true, .values = {1}};
      }
      CHECK(simulate(scenario, gpus).points[0].step.p50 == before + us(300));
    }
  }
  scenario.stragglers = {{.worker = 0, .delay = us(300), .part = StepPart::step}};
  CHECK(simulate(scenario, gpus).points[0].step.p50 == before);
}

TEST_CASE("draws spread the steps, the same on any number of threads", "[simulate]") {
  Scenario scenario = on_cores(2);
  scenario.workers = {1, 2, 3, 4};
  scenario.iterations = 400;
  scenario.stragglers = {
      {.worker = kEveryWorker, .slowdown_varies = {.kind = Kind::log_normal, .sigma = 0.3}}};
  const Prediction alone = simulate(scenario, undisturbed(), 1);
  for (const unsigned threads : {2U, 4U})
    CHECK(simulate(scenario, undisturbed(), threads) == alone);
  for (const ResultPoint& point : alone.points) {
    CHECK(point.step.p10 < point.step.p50);
    CHECK(point.step.p50 < point.step.p90);
    CHECK(point.uncertainty.drawn > 0.05);
  }
  // The slowest of more workers is slower.
  for (std::size_t i = 2; i < 4; ++i) {
    CHECK(alone.points[i].efficiency < alone.points[i - 1].efficiency);
  }
  scenario.seed = 2;
  CHECK_FALSE(simulate(scenario, undisturbed()) == alone);
}

TEST_CASE("a backup worker takes the slow one's place", "[simulate]") {
  // Three workers, one of them three times as slow: with one backup a step is as long as that of
  // three equal ones (the table is the same for two), and two thirds of its samples count.
  Scenario scenario = on_cores(3);
  const ResultPoint equal = answer(scenario);
  scenario.stragglers = {{.worker = 2, .slowdown = Factor::of(3)}};
  CHECK(answer(scenario).step.p50 > equal.step.p50);
  scenario.backup_workers = 1;
  const ResultPoint backed = answer(scenario);
  CHECK(backed.step.p50 == equal.step.p50);
  CHECK(backed.throughput == Approx(equal.throughput * 2 / 3));
  CHECK(backed.breakdown.step() == backed.step.mean);
}

TEST_CASE("a worker that hardly moves is refused", "[simulate]") {
  Scenario scenario = on_cores(2);
  scenario.stragglers = {{.worker = 1, .slowdown = Factor::of(1000)},
                         {.worker = kEveryWorker, .slowdown = Factor::of(1000)},
                         {.worker = 1, .slowdown = Factor::of(1000)}};
  CHECK_THROWS_WITH(answer(scenario), Contains("worker 1 hardly moves"));
}

}  // namespace
}  // namespace lockstep
