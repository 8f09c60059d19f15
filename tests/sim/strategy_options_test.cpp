// Options of strategies, from a scenario to its prediction.
#include <string>

#include "sim/core/error.h"
#include "sim/scenario/point.h"
#include "sim/simulate.h"
#include "tests/catch.h"
#include "tests/synthetic.h"

namespace lockstep {
namespace {

/// Two hosts of two GPUs.
Scenario two_hosts() {
  Scenario scenario;
  scenario.model = "two_layers";
  scenario.batch_per_worker = 32;
  scenario.workers = {4};
  scenario.strategy.kind = "horovod";
  scenario.platform.devices_per_host = 2;
  scenario.platform.network.emplace();
  scenario.platform.network->bandwidth = {1'000'000'000};
  scenario.iterations = 4;
  scenario.noise = false;
  return scenario;
}

Algorithm all_reduce_of(const Scenario& scenario) {
  const Calibration calibration = gpu_calibration();
  return make_point(scenario, calibration, 4)
      .workload.collective(CollectiveKind::all_reduce, Bytes{8 << 20})
      .collective.algorithm;
}

std::string refusal(const Scenario& scenario) {
  try {
    simulate(scenario, gpu_calibration(), 1);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("on one host of GPUs Horovod's ranks agree as fast as was measured") {
  // Two gradients: three floats. A straight line through what four and twelve took.
  Scenario scenario = two_hosts();
  scenario.platform = {};
  Calibration calibration = gpu_calibration();
  CHECK(make_point(scenario, calibration, 4).workload.control_round == Time{});
  calibration.copies.push_back(
      {"agreement", {{Bytes{4}, 1, {}, us(50)}, {Bytes{20}, 1, {}, us(90)}}});
  CHECK(make_point(scenario, calibration, 4).workload.control_round == us(70));
}

TEST_CASE("Horovod's hierarchical all-reduce goes between hosts with each device's share",
          "[simulate]") {
  Scenario scenario = two_hosts();
  CHECK(all_reduce_of(scenario) == Algorithm::ring);
  const Time flat = simulate(scenario, gpu_calibration(), 1).points[0].step.mean;
  scenario.strategy.hierarchical = true;
  CHECK(all_reduce_of(scenario) == Algorithm::hierarchical);
  // A host's link carries all bytes once, each device a half of them to its peer and back; along
  // the ring it carries them one and a half times.
  const Time levels = simulate(scenario, gpu_calibration(), 1).points[0].step.mean;
  CHECK(levels < flat);

  scenario.platform.collective.emplace();
  scenario.platform.collective->all_reduce = Algorithm::ring;
  CHECK_THAT(refusal(scenario), Contains("strategy.hierarchical: platform.collective names"));
  scenario.platform.collective = CollectiveModel{.table = true, .all_reduce = {}};
  CHECK_THAT(refusal(scenario), Contains("strategy.hierarchical: collectives between the hosts"));
}

TEST_CASE("what Horovod reduces together is no recorded graph", "[simulate]") {
  Scenario scenario = two_hosts();
  scenario.graph = true;
  CHECK_THAT(refusal(scenario), StartsWith("graph: what Horovod reduces together"));
}

TEST_CASE("samples of all passes of a step count", "[simulate]") {
  Scenario scenario = two_hosts();
  scenario.strategy.kind = "ddp";
  scenario.strategy.accumulate = 3;
  scenario.strategy.no_sync = true;
  const ResultPoint point = simulate(scenario, gpu_calibration(), 1).points[0];
  CHECK(point.throughput == Approx(3 * 4 * 32 / point.step.mean.seconds()));
  scenario.dataset = DatasetOptions{.samples = 3 * 4 * 32 * 10 + 1, .drop_last = true};
  CHECK(steps_per_epoch(scenario, 4) == 10);
}

}  // namespace lockstep
