#include "calibration/thread_search.h"

#include <algorithm>

#include "sim/workload/profile_choice.h"
#include "tests/catch.h"
#include "tests/synthetic.h"

namespace lockstep {
namespace {

/// two_layers() alone: a step of 650 us at batch 32, 350 us at 16; two threads take 60 % of it in
/// the layers.
Calibration with_threads(int threads, int cores) {
  Calibration calibration = cpu_calibration();
  calibration.id = "threads-" + std::to_string(threads);
  calibration.origin.machine.cores = cores;
  calibration.interference = {};
  for (Profile& profile : calibration.profiles) {
    profile.device = std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    profile.gradient_hook = {};
    if (threads == 1) continue;
    for (Layer& layer : profile.layers) {
      layer.forward.device = Time::picoseconds(layer.forward.device.ps() * 6 / 10);
      layer.backward.device = Time::picoseconds(layer.backward.device.ps() * 6 / 10);
    }
  }
  calibration.cores = {{1, 1, 1.0}, {2, 1, 1.0}, {1, 2, 1.0}};
  calibration.copies.clear();
  // An all-reduce of two processes: 20 us and a byte in 10 ps.
  for (CollectiveTable& table : calibration.collectives) {
    for (CollectivePoint& point : table.points) {
      point.p50 = us(20) + Time::picoseconds(point.bytes.count * 10);
      point.host = {};
    }
  }
  return calibration;
}

Scenario question() {
  Scenario scenario;
  scenario.name = "threads";
  scenario.model = "two_layers";
  scenario.total_batch = 32;
  scenario.workers = {1};
  scenario.strategy.kind = "all_reduce";
  scenario.noise = false;
  return scenario;
}

TEST_CASE("processes x threads, by hand", "[threads]") {
  // 1 x 1 at 32: 600 + 50 = 650 us. 1 x 2: 360 + 50 = 410. 2 x 1, 16 samples each: 300, two
  // all-reduces of 20 + 41.94304 us, 50: 473.88608.
  const std::vector<Calibration> calibrations{with_threads(1, 2), with_threads(2, 2)};
  const std::vector<int> batches{32};
  const auto points = search_threads(question(), calibrations, batches);
  REQUIRE(points.size() == 3);
  CHECK(points[0].processes == 1);
  CHECK(points[0].threads == 2);
  CHECK(points[0].predicted.step.p50 == us(410));
  CHECK(points[1].processes == 2);
  CHECK(points[1].threads == 1);
  CHECK(points[1].predicted.step.p50 == Time::picoseconds(473'886'080));
  CHECK(points[2].predicted.step.p50 == us(650));
  CHECK(points[2].predicted.throughput == Approx(32 / 650e-6));
}

TEST_CASE("all processes that the cores hold are asked, where each has a sample", "[threads]") {
  const std::vector<Calibration> calibrations{with_threads(1, 4), with_threads(2, 4)};
  const std::vector<int> batches{3, 32};
  const auto points = search_threads(question(), calibrations, batches);
  CHECK(points.size() == 3 + 4 + 2 + 2);  // four processes have no sample each at 3
  CHECK(std::ranges::all_of(points, [](const ThreadPoint& point) {
    return point.processes * point.threads <= 4 && point.total_batch >= point.processes;
  }));
  CHECK(std::ranges::is_sorted(points, std::ranges::greater{}, [](const ThreadPoint& point) {
    return point.predicted.throughput;
  }));
}

TEST_CASE("runs stand beside the points that they are of", "[threads]") {
  const std::vector<Calibration> calibrations{with_threads(1, 2), with_threads(2, 2)};
  const std::vector<int> batches{32};
  auto points = search_threads(question(), calibrations, batches);
  const auto run = [](const std::string& calibration, const std::string& kind, int workers,
                      int batch, Time step) {
    Run result;
    result.id = calibration + kind;
    result.calibration = calibration;
    result.model = "two_layers";
    result.batch_per_worker = batch;
    result.workers = workers;
    result.strategy.kind = kind;
    result.repeats.resize(1);
    result.repeats[0].step = {step, step, step, step};
    result.repeats[0].speed_index = {us(1000), us(1000)};  // the calibration's speed
    result.repeats[0].samples = {step, step};
    return result;
  };
  const std::vector<Run> runs{run("threads-2", "single", 1, 32, us(400)),
                              run("threads-1", "all_reduce", 2, 16, us(500)),
                              run("threads-1", "all_reduce", 2, 32, us(1)),   // another batch
                              run("threads-1", "ddp", 2, 16, us(1)),          // another strategy
                              run("elsewhere", "all_reduce", 2, 16, us(1))};  // another machine
  CHECK(add_measured(points, question(), calibrations, runs) == 2);
  CHECK(points[0].measured.value() == us(400));
  CHECK(points[0].error == Approx(410.0 / 400 - 1));
  CHECK(points[0].measured_throughput() == Approx(32 / 400e-6));
  CHECK(points[1].measured.value() == us(500));
  CHECK_FALSE(points[2].measured);
  const std::string table = to_table(points);
  CHECK_THAT(table, Contains("Fastest, as predicted: 1 x 2"));
  CHECK_THAT(table, Contains("Fastest, as measured: 1 x 2 at batch 32. Mean error 3.9 %"));
}

TEST_CASE("calibrations that do not belong together are refused", "[threads]") {
  const auto message = [](const std::vector<Calibration>& calibrations) -> std::string {
    const std::vector<int> batches{32};
    try {
      search_threads(question(), calibrations, batches);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK_THAT(message({with_threads(1, 2), with_threads(1, 2)}), Contains("as another has"));
  CHECK_THAT(message({with_threads(1, 2), with_threads(2, 4)}), Contains("measure all on one"));
  CHECK_THAT(message({gpu_calibration()}), Contains("is of GPUs"));
}

TEST_CASE("a calibration's threads are those of its profiles", "[threads]") {
  CHECK(compute_threads(with_threads(14, 28)) == 14);
  Calibration calibration = cpu_calibration();  // its profiles say nothing of threads
  CHECK(compute_threads(calibration) == 1);
  calibration.origin.environment["OMP_NUM_THREADS"] = "7";
  CHECK(compute_threads(calibration) == 7);
  calibration.origin.environment.clear();
  CHECK(compute_threads(calibration) == 1);
}

}  // namespace
}  // namespace lockstep
