#include "sim/split.h"

#include <memory>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/report/split_table.h"
#include "sim/simulate.h"
#include "tests/catch.h"
#include "tests/synthetic.h"

namespace lockstep {
namespace {

/// 18.75 us a sample and 50 us for the optimizer, on cores.
Calibration cores() {
  Calibration calibration = cpu_calibration();
  calibration.id = "cores";
  calibration.interference = {};
  calibration.noise = {};
  for (Profile& profile : calibration.profiles) profile.gradient_hook = {};
  return calibration;
}

/// Four times as fast; no time to launch; copies of 5 us either way.
Calibration gpus() {
  Calibration calibration = cores();
  calibration.id = "gpus";
  calibration.origin.machine.gpus.resize(2, {.name = "synthetic GPU", .uuid = {}, .throttle = {}});
  for (Profile& profile : calibration.profiles) {
    for (Layer& each : profile.layers) {
      for (Cost* cost : {&each.forward, &each.backward}) {
        cost->device = Time::picoseconds(cost->device.ps() / 4);
      }
    }
  }
  for (const char* what : {"host_to_device", "device_to_host"}) {
    calibration.copies.push_back({what, {{Bytes{8 << 20}, 1, us(5), us(0)}}});
  }
  return calibration;
}

Scenario cores_and_gpus() {
  Scenario scenario;
  scenario.name = "unlike";
  scenario.model = "two_layers";
  scenario.total_batch = 96;
  scenario.workers = {3};
  scenario.strategy.kind = "heterogeneous";
  scenario.split_measured = true;
  scenario.devices = {
      {.calibration = "", .count = 1, .costs = std::make_shared<Calibration>(cores())},
      {.calibration = "", .count = 2, .costs = std::make_shared<Calibration>(gpus())}};
  scenario.platform.devices_per_host = 3;
  scenario.iterations = 12;
  scenario.noise = false;
  return scenario;
}

TEST_CASE("a worker on cores and two GPUs share a batch by their speeds, by hand", "[split]") {
  // Cores: 18.75 b + 50 and two copies of 5; a GPU: 4.6875 b + 50. In fractions
  // T = (96 + 60/18.75 + 2 x 50/4.6875) / (1/18.75 + 2/4.6875) = 251.1: 10.2 and 42.9 samples.
  // Balancing: 32 each, 12 + 42 + 42, 10 + 43 + 43.
  const Calibration main = gpus();
  const Scenario scenario = cores_and_gpus();
  const SplitAnswer answer = find_split(scenario, main);
  CHECK(answer.best.shares == std::vector<int>{10, 43, 43});
  REQUIRE(answer.rounds.size() == 3);
  CHECK(answer.rounds[0].shares == std::vector<int>{32, 32, 32});
  CHECK(answer.rounds[0].times[0] == us(660));
  CHECK(answer.rounds[1].shares == std::vector<int>{12, 42, 42});
  CHECK(answer.rounds[2].shares == answer.best.shares);
  CHECK(answer.best.times[0].us() == Approx(247.5));
  CHECK(answer.best.times[1].us() == Approx(50 + 43 * 4.6875));
  // A step from sum to sum: the cores copy it in 5 us, update in 50, compute 187.5, copy gradients
  // into one array in 80 (8 MiB on the line from 10 us at 1 MiB to 640 at 64), and to a GPU in 5.
  // Its host launches the addition in 5; its device, after 50 + 201.56 + 80, has been there for 1.
  // 80 to add; 8 MiB over 10 GB/s and 20 us.
  const double copied = 80, exchange = 20 + 838.8608;
  const ResultPoint together = simulate(scenario, main).points.at(0);
  CHECK(together.step.p50.us() ==
        Approx(5 + 50 + 187.5 + copied + 5 + 5 + 80 + exchange).epsilon(1e-6));
  CHECK(together.throughput == Approx(96 / together.step.mean.seconds()));
  CHECK(together.batch_per_worker == 10);
  // Without cores: 48 a GPU, which is faster by what is not added.
  REQUIRE(answer.choices.size() == 3);
  CHECK(answer.choices[0].point.step.p50 == together.step.p50);
  CHECK(answer.choices[1].without == "1 of cores");
  CHECK(answer.choices[1].shares == std::vector<int>{48, 48});
  CHECK(answer.choices[1].point.step.p50.us() ==
        Approx(48 * 4.6875 + copied + exchange + 50).epsilon(1e-6));
  // Cores alone: 96 samples, 1850 us.
  CHECK(answer.choices[2].without == "2 of synthetic GPU");
  CHECK(answer.choices[2].workers == 1);
  CHECK(answer.choices[2].point.step.p50 == us(1850));
  CHECK(answer.varying == answer.steady);
  const std::string table = to_table(answer);
  CHECK_THAT(table, Contains("1 of cores is not worth having: -"));
  CHECK_THAT(table, Contains("2 of synthetic GPU is worth having: +"));
  CHECK_THAT(table, Contains("Variability costs 0.0 %"));
}

TEST_CASE("one way of combining overtakes the other at a size", "[split]") {
  // Device: copied into one array, 10 + add + 20 us + bytes over 10 GB/s. Host: the same copy, 10 +
  // two adds. The copies are 5 us for any
  // size up to 8 MiB and grow with it beyond. Adding is (640 - 10) us over 63 MiB: 10 us for 1 MiB
  // and less, so that a second add costs less than an exchange at all sizes...
  const Calibration main = gpus();
  const SplitAnswer answer = find_split(cores_and_gpus(), main);
  REQUIRE(answer.combine);
  CHECK(answer.combine->on_device.us() == Approx(80 + 10 + 80 + 20 + 838.8608));
  CHECK(answer.combine->on_host.us() == Approx(80 + 10 + 160));
  CHECK_FALSE(answer.overtakes);
  // ... but where the cores add thirty times as slowly: 2 x 300 us against 10 + 20 + 0.1 us at 1
  // KiB. At b >= 1 MiB the host takes 600 us each MiB, the device 10 + 104.8576 each and 20 once.
  Scenario slow = cores_and_gpus();
  Calibration slow_cores = cores();
  slow_cores.copies = {
      {"add", {{Bytes{1 << 20}, 1, us(10), us(0)}, {Bytes{2 << 20}, 1, us(400), us(0)}}}};
  slow.devices[0].costs = std::make_shared<Calibration>(slow_cores);
  const SplitAnswer other = find_split(slow, main);
  // At m MiB, m > 1, a GPU copies into one array in 10 m, the cores in nothing. Host: 10 m + 5, two
  // adds of 10 + 390 (m - 1), 5. Device: 10 m, an add of 10 m, 20 + 104.8576 m, 5. Both are
  // 790 m - 750 = 124.8576 m + 25 at m = 775 / 665.1424.
  REQUIRE(other.overtakes);
  CHECK(static_cast<double>(other.overtakes->count) / (1 << 20) ==
        Approx(775 / 665.1424).epsilon(1e-4));
}

TEST_CASE("a slowed GPU gets less, and may not be worth having", "[split]") {
  // Two workers of one kind on cores, the second 100 times as slow: 96 samples.
  Scenario scenario = cores_and_gpus();
  scenario.devices.clear();
  scenario.platform.devices_per_host = 0;
  scenario.workers = {2};
  scenario.stragglers = {{.worker = 1, .slowdown = Factor::of(100)}};
  const SplitAnswer answer = find_split(scenario, cores());
  CHECK(answer.best.shares == std::vector<int>{95, 1});
  REQUIRE(answer.choices.size() == 2);
  CHECK(answer.choices[1].without == "worker 1");
  CHECK(answer.choices[1].point.throughput > answer.choices[0].point.throughput);
  CHECK_THAT(to_table(answer), Contains("worker 1 is not worth having: -"));
}

TEST_CASE("variability costs the mean of the maxima: Choi's three batches, simulated", "[split]") {
  // One layer of a second; what devices took in three batches (1.9, 2.3, 1.5 s on the cores, 2.5,
  // 1.4, 1.8 on both GPUs), listed. Steps take 2.2 s and an exchange of 4 bytes, not 1.9.
  Calibration calibration = cores();
  Profile profile;
  profile.model = "choi";
  profile.batch = 1;
  profile.layers = {layer("a", "conv", cost(0, 1'000'000, 0), {}, Bytes{1024})};
  number_backward(profile);
  calibration.profiles = {profile};
  calibration.profiles.push_back(profile);
  calibration.profiles.back().beside = 3;
  Scenario scenario = cores_and_gpus();
  scenario.devices.clear();
  scenario.platform.devices_per_host = 0;
  scenario.model = "choi";
  scenario.total_batch = 3;
  scenario.split_measured = false;
  scenario.strategy.split = {1, 1, 1};
  scenario.iterations = 13;
  const auto listed = [](int worker, std::vector<double> seconds) {
    return Straggler{
        .worker = worker,
        .slowdown_varies = {
            .kind = Variability::Kind::samples, .listed = true, .values = std::move(seconds)}};
  };
  scenario.stragglers = {listed(0, {1.9, 2.3, 1.5}), listed(1, {2.5, 1.4, 1.8}),
                         listed(2, {2.5, 1.4, 1.8})};
  CHECK(simulate(scenario, calibration).points.at(0).step.mean.seconds() ==
        Approx(2.2).epsilon(1e-4));
  const SplitAnswer answer = find_split(scenario, calibration);
  CHECK(answer.varying.seconds() == Approx(2.2).epsilon(1e-4));
  CHECK(answer.steady.seconds() == Approx(1.9).epsilon(1e-4));
}

TEST_CASE("devices that cannot combine are refused", "[split]") {
  const auto message = [](const Scenario& scenario) -> std::string {
    try {
      simulate(scenario, gpus());
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  Scenario scenario = cores_and_gpus();
  scenario.devices[1].costs.reset();
  CHECK_THAT(message(scenario), Contains("has not been read"));
  scenario = cores_and_gpus();
  Calibration bare = gpus();
  bare.copies.clear();
  scenario.devices[1].costs = std::make_shared<Calibration>(bare);
  CHECK_THAT(message(scenario), Contains("has no copies host_to_device"));
  scenario = cores_and_gpus();
  scenario.devices[1].costs = scenario.devices[0].costs;
  CHECK_THAT(message(scenario), Contains("more than one worker on cores"));
  scenario = cores_and_gpus();
  scenario.devices.erase(scenario.devices.begin());
  scenario.workers = {2};
  scenario.strategy.combine_on_host = true;
  CHECK_THAT(message(scenario), Contains("no worker on cores adds gradients"));
  scenario = cores_and_gpus();
  Calibration larger = gpus();
  for (Profile& profile : larger.profiles) profile.layers[0].parameters[0].bytes = Bytes{4};
  scenario.devices[1].costs = std::make_shared<Calibration>(larger);
  CHECK_THAT(message(scenario), Contains("measure both with one version"));
  scenario.strategy.kind = "ddp";
  CHECK_THROWS_WITH(find_split(scenario, gpus()), Contains("several workers of heterogeneous"));
}

}  // namespace
}  // namespace lockstep
