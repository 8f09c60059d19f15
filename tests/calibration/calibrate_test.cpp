#include "calibration/calibrate.h"

#include <cmath>

#include "calibration/single_step.h"
#include "sim/core/error.h"
#include "tests/catch.h"

using namespace lockstep;

namespace {

Time us(std::int64_t value) {
  return Time::microseconds(value);
}

/// Two layers, backward twice as long as forward; `unit` is the first layer's forward.
Profile cpu_profile(Time unit) {
  Profile profile;
  profile.model = "tiny";
  profile.batch = 16;
  profile.layers.resize(2);
  profile.layers[0].name = "conv";
  profile.layers[0].kind = "conv";
  profile.layers[0].forward.device = unit;
  profile.layers[0].backward.device = unit * 2;
  profile.layers[0].backward_order = 1;
  profile.layers[0].parameters = {{"weight", {400}, 0}};
  profile.layers[1].name = "fc";
  profile.layers[1].kind = "linear";
  profile.layers[1].forward.device = unit * 3;
  profile.layers[1].backward.device = unit * 6;
  return profile;
}

ProfileSample sample(int process, Time unit, Time step, Time reference) {
  ProfileSample out;
  out.process = process;
  out.speed_index = {reference, reference};
  out.profile = cpu_profile(unit);
  out.steps = {step, step, step};
  return out;
}

Measurement cpu_measurement() {
  Measurement measurement;
  measurement.id = "visit";
  measurement.reference = us(100);
  return measurement;
}

}  // namespace

TEST_CASE("layers add up to the unprofiled step, at the visit's speed") {
  // Profiled, the layers take 12 units of 100 us = 1200 us, unprofiled steps 600 us. The second
  // process ran at half the speed (reference 200 us against 100): all its times count half. The
  // third is an outlier of 3 times the step, which medians ignore.
  Measurement measurement = cpu_measurement();
  measurement.profiles = {sample(0, us(100), us(600), us(100)),
                          sample(1, us(200), us(1200), us(200)),
                          sample(2, us(100), us(1800), us(100))};
  const Calibration calibration = calibrate({measurement});
  REQUIRE(calibration.profiles.size() == 1);
  const Profile& profile = calibration.profiles[0];
  CHECK(profile.step == us(600));
  // A unit is a twelfth of the step: 50 us.
  CHECK(profile.layers[0].forward.device.us() == Approx(50).epsilon(1e-6));
  CHECK(profile.layers[0].backward.device.us() == Approx(100).epsilon(1e-6));
  CHECK(profile.layers[1].backward.device.us() == Approx(300).epsilon(1e-6));
  CHECK(simulated_single_step(profile, true, 0).us() == Approx(600).epsilon(1e-6));
  // What profiling cost is kept: 1200 / 600 - 1 = 1 in the median of 1, 1 and -1/3.
  bool found = false;
  for (const Fit& fit : calibration.fits) {
    if (!fit.what.starts_with("measuring tiny at batch 16")) continue;
    found = true;
    CHECK(fit.residual == Approx(1).epsilon(1e-6));
    CHECK(fit.points == 3);
  }
  CHECK(found);
}

TEST_CASE("profiles are kept apart by batch, precision, graph and neighbours") {
  Measurement measurement = cpu_measurement();
  for (int i = 0; i < 5; ++i) {
    measurement.profiles.push_back(sample(0, us(100), us(1200), us(100)));
  }
  measurement.profiles[1].profile.batch = 32;
  measurement.profiles[2].profile.precision = "bf16";
  measurement.profiles[3].profile.beside = 2;
  measurement.profiles[4].profile.model = "other";
  CHECK(calibrate({measurement}).profiles.size() == 5);
}

TEST_CASE("of several GPUs the slowest stands for all where the host has no part") {
  Measurement measurement = cpu_measurement();
  measurement.origin.machine.gpus.resize(2);
  // Rank 1's device is slower; the reference kernel of a GPU changes nothing. Steps last as long as
  // the layers, 12 units.
  measurement.profiles = {sample(0, us(100), us(1200), us(100)),
                          sample(0, us(110), us(1320), us(140))};
  measurement.profiles[1].rank = 1;
  for (ProfileSample& one : measurement.profiles) one.profile.graph = true;
  const Calibration calibration = calibrate({measurement});
  REQUIRE(calibration.profiles.size() == 1);
  CHECK(calibration.profiles[0].layers[0].forward.device.us() == Approx(110).epsilon(1e-6));
}

TEST_CASE("of two GPUs each rank keeps a host of its own") {
  // Host-bound: 4 launches of 300 us. Steps of (1220, 1330) and (1240, 1230) us in two repeats of
  // two ranks, 1235 in the median of all. The slower ranks' median is (1330 + 1240) / 2 = 1285, the
  // faster ones' 1225; rank 1 is the slower one: 1280 in its median against 1230.
  Measurement measurement = cpu_measurement();
  measurement.origin.machine.gpus.resize(2);
  const std::int64_t steps[] = {1220, 1330, 1240, 1230};
  for (int i = 0; i < 4; ++i) {
    ProfileSample one = sample(i / 2, us(10), us(steps[i]), us(100));
    one.rank = i % 2;
    for (Layer& layer : one.profile.layers) {
      layer.forward.host = layer.backward.host = us(300);
      layer.forward.launches = layer.backward.launches = 1;
    }
    measurement.profiles.push_back(one);
  }
  const Calibration calibration = calibrate({measurement});
  REQUIRE(calibration.profiles.size() == 1);
  const Profile& profile = calibration.profiles[0];
  CHECK(profile.step == us(1235));
  CHECK(simulated_single_step(profile, false, 0).us() == Approx(1235).epsilon(1e-3));
  REQUIRE(profile.host_of_rank.size() == 2);
  CHECK(profile.host_of_rank[0] == Approx(1225.0 / 1235));
  CHECK(profile.host_of_rank[1] == Approx(1285.0 / 1235));
}

TEST_CASE("where the device bounds the step, issuing tells how hosts differ") {
  // Issuing takes 4 x 1 us on rank 0 and 4 x 3 us on rank 1, 8 us in the median of both; the device
  // 120 us and 132 us, and the slower card's step is what one card is expected to take.
  Measurement measurement = cpu_measurement();
  measurement.origin.machine.gpus.resize(2);
  for (int rank = 0; rank < 2; ++rank) {
    ProfileSample one = sample(0, us(10 + rank), us(121 + 14 * rank), us(100));
    one.rank = rank;
    for (Layer& layer : one.profile.layers) {
      layer.forward.host = layer.backward.host = us(1 + 2 * rank);
      layer.forward.launches = layer.backward.launches = 1;
    }
    measurement.profiles.push_back(one);
  }
  const Calibration calibration = calibrate({measurement});
  const Profile& profile = calibration.profiles.at(0);
  CHECK(profile.step == us(135));
  REQUIRE(profile.host_of_rank.size() == 2);
  CHECK(profile.host_of_rank[0] == Approx(0.5));
  CHECK(profile.host_of_rank[1] == Approx(1.5));
}

TEST_CASE("an eager step that the host bounds is fitted on the host") {
  // Host: 2 layers x 2 x 300 us = 1200 us of launches; the device needs 12 x 10 us. Steps of 1320
  // us: the host, then the last layer's backward (layer 0's, 20 us) on the device: 1220 us
  // simulated.
  Profile profile = cpu_profile(us(10));
  for (Layer& layer : profile.layers) {
    layer.forward.host = layer.backward.host = us(300);
    layer.forward.launches = layer.backward.launches = 1;
  }
  CHECK(simulated_single_step(profile, false, 1024) == us(1220));
  const double before = fit_to_step(profile, us(1320), false, 1024);
  CHECK(before == Approx(1220.0 / 1320 - 1).epsilon(1e-9));
  CHECK(simulated_single_step(profile, false, 1024).us() == Approx(1320).epsilon(1e-3));
  CHECK(profile.layers[0].forward.device == us(10));
  CHECK(profile.layers[0].forward.host.us() == Approx(325).epsilon(2e-3));
}

TEST_CASE("an eager step that the device bounds is fitted on the device") {
  // Launches of 4 x 1 us run ahead of 120 us on the device, and cannot make the step longer: 121 us
  // simulated, with the first launch. 133 us measured: the device 12 us, a tenth, slower.
  Profile profile = cpu_profile(us(10));
  for (Layer& layer : profile.layers) {
    layer.forward.host = layer.backward.host = us(1);
    layer.forward.launches = layer.backward.launches = 1;
  }
  CHECK(simulated_single_step(profile, false, 1024) == us(121));
  fit_to_step(profile, us(133), false, 1024);
  CHECK(simulated_single_step(profile, false, 1024).us() == Approx(133).epsilon(1e-6));
  CHECK(profile.layers[0].forward.host == us(1));
  CHECK(profile.layers[0].forward.device.us() == Approx(11).epsilon(1e-6));
}

TEST_CASE("layers are not scaled beyond what a measurement can be wrong by") {
  Profile profile = cpu_profile(us(100));
  CHECK(fit_to_step(profile, us(120), true, 0) == Approx(9).epsilon(1e-9));
  CHECK(profile.layers[0].forward.device == us(100));
}

TEST_CASE("collective tables: medians over repeats at equal speed, ascending") {
  Measurement measurement = cpu_measurement();
  measurement.profiles = {sample(0, us(100), us(1200), us(100))};
  const auto table = [](std::int64_t small, std::int64_t large, Time reference) {
    CollectiveSample out;
    out.speed_index = {reference, reference};
    out.table.collective = "all_reduce";
    out.table.backend = "gloo";
    out.table.workers = 2;
    out.table.points = {{{1024}, us(small), us(small), us(small), us(1)},
                        {{4096}, us(large), us(large), us(large), us(1)}};
    return out;
  };
  // At equal speed 10, 20, 30 and 8, 40, 50 us; medians 20 and 40.
  measurement.collectives = {table(10, 8, us(100)), table(40, 80, us(200)), table(30, 50, us(100))};
  const Calibration calibration = calibrate({measurement});
  REQUIRE(calibration.collectives.size() == 1);
  const auto& points = calibration.collectives[0].points;
  REQUIRE(points.size() == 2);
  CHECK(points[0].p50 == us(20));
  CHECK(points[1].p50 == us(40));
}

TEST_CASE("sizes that are held out stay apart, as they were measured") {
  Measurement measurement = cpu_measurement();
  measurement.profiles = {sample(0, us(100), us(1200), us(100))};
  const auto table = [](std::int64_t first, std::int64_t second, std::int64_t between) {
    CollectiveSample out;
    out.speed_index = {us(100), us(100)};
    out.table.collective = "all_reduce";
    out.table.workers = 2;
    out.table.points = {{{1024}, us(10), us(10), us(10), us(1)}};
    out.table.held_out = {{{2048}, us(first), us(first), us(first), us(2)},
                          {{3072}, us(second), us(second), us(second), us(3)}};
    out.table.call_between = us(between);
    return out;
  };
  // Medians 30 and 20, which falls: nothing is read off them, so they are not pooled.
  measurement.collectives = {table(30, 20, 5), table(40, 10, 0), table(20, 30, 7)};
  const Calibration calibration = calibrate({measurement});
  REQUIRE(calibration.collectives.size() == 1);
  const CollectiveTable& fitted = calibration.collectives[0];
  CHECK(fitted.points.size() == 1);
  REQUIRE(fitted.held_out.size() == 2);
  CHECK(fitted.held_out[0].p50 == us(30));
  CHECK(fitted.held_out[1].p50 == us(20));
  CHECK(fitted.held_out[1].host == us(3));
  CHECK(fitted.call_between == us(6));  // of the two that timed it
}

TEST_CASE("what DDP has the host do without communication becomes a hook of each gradient") {
  Measurement measurement = cpu_measurement();
  measurement.origin.machine.gpus.resize(1);
  measurement.profiles = {sample(0, us(100), us(1200), us(100)),
                          sample(1, us(100), us(1200), us(100)),
                          sample(2, us(100), us(1200), us(100))};
  // One gradient, whose copy takes 5 us: 15, 25 and 35 us are left.
  for (std::size_t i = 0; i < 3; ++i) {
    measurement.profiles[i].ddp_host = us(20 + 10 * static_cast<std::int64_t>(i));
  }
  measurement.copies = {{"bucket_in", {{{400}, 1, us(9), us(5)}}}};
  const Calibration calibration = calibrate({measurement});
  REQUIRE(calibration.profiles.size() == 1);
  CHECK(calibration.profiles[0].gradient_hook.host == us(25));
}

TEST_CASE("interference is a median, at least one, for each kind of layer") {
  Measurement measurement = cpu_measurement();
  measurement.profiles = {sample(0, us(100), us(1200), us(100))};
  measurement.interference = {
      {"conv", "transferring", 2, us(100), us(110)}, {"conv", "transferring", 2, us(100), us(120)},
      {"conv", "transferring", 2, us(100), us(300)}, {"norm", "transferring", 2, us(100), us(140)},
      {"conv", "waiting", 2, us(100), us(90)},       {"", "compute", 2, us(100), us(150)},
  };
  const InterferenceFit fit = calibrate({measurement}).interference;
  REQUIRE(fit.by_layer_kind.size() == 2);
  CHECK(fit.by_layer_kind[0].transferring == Approx(1.2));
  CHECK(fit.by_layer_kind[0].waiting == 1);  // 0.9 is noise: nothing gets faster beside something
  CHECK(fit.by_layer_kind[1].transferring == Approx(1.4));
  CHECK(fit.transferring == Approx(1.3));  // (1.2 + 1.4) / 2
  CHECK(fit.collective_beside_compute == Approx(1.5));
}

TEST_CASE("what a collective beside compute waits, and by how much each byte is slower") {
  Measurement measurement = cpu_measurement();
  measurement.profiles = {sample(0, us(100), us(1200), us(100))};
  // 4 KiB: 3100 instead of 100. 8 MiB: 7500 instead of 3100, so (7500 - 3100) / (3100 - 100) a
  // byte.
  measurement.interference = {
      {"conv", "compute", 2, us(100), us(3100), Bytes{4096}},
      {"norm", "compute", 2, us(100), us(3100), Bytes{4096}},
      {"conv", "compute", 2, us(3100), us(7500), Bytes{8 << 20}},
      {"norm", "compute", 2, us(3100), us(7500), Bytes{8 << 20}},
  };
  const InterferenceFit fit = calibrate({measurement}).interference;
  CHECK(fit.wait_beside_compute == us(3000));
  CHECK(fit.collective_beside_compute == Approx(4400.0 / 3000));
}

TEST_CASE("cores slow down against one active worker") {
  Measurement measurement = cpu_measurement();
  measurement.profiles = {sample(0, us(100), us(1200), us(100))};
  // Four workers took 240 us while the machine ran at 5/6 of its speed: 200 us, twice one alone.
  measurement.cores = {{1, 1, {us(100), us(100)}, us(100)}, {4, 1, {us(120), us(120)}, us(240)}};
  const std::vector<CoreSlowdown> cores = calibrate({measurement}).cores;
  REQUIRE(cores.size() == 2);
  CHECK(cores[0].slowdown == 1);
  CHECK(cores[1].slowdown == Approx(2));
}

TEST_CASE("noise is read off raw steps and processes") {
  Measurement measurement = cpu_measurement();
  // Neighbouring steps are 4 % apart, processes 6 %: each times 1.0483.
  for (int process = 0; process < 2; ++process) {
    ProfileSample one = sample(process, us(100), us(1000), us(100));
    const std::int64_t center = process == 0 ? 1000 : 1060;
    const std::int64_t more = center * 104 / 100;
    one.steps = {us(center), us(more), us(center), us(more), us(center)};
    measurement.profiles.push_back(one);
  }
  const Calibration calibration = calibrate({measurement});
  CHECK(calibration.noise.step == Approx(1.0483 * std::log(1.04)).epsilon(0.01));
  CHECK(calibration.noise.process == Approx(1.0483 * std::log(1.06)).epsilon(0.01));
  CHECK(calibration.profiles[0].spread_between_processes == calibration.noise.process);
}

TEST_CASE("drift is no noise between steps") {
  // Half as slow again over a hundred steps, half a percent from each to the next.
  Measurement measurement = cpu_measurement();
  measurement.profiles = {sample(0, us(100), us(1000), us(100))};
  measurement.profiles[0].steps.clear();
  for (int i = 0; i < 100; ++i) measurement.profiles[0].steps.push_back(us(1000 + 5 * i));
  CHECK(calibrate({measurement}).noise.step < 0.006);
}

TEST_CASE("collectives between hosts come from a visit of their own") {
  Measurement profiles = cpu_measurement();
  profiles.profiles = {sample(0, us(100), us(1200), us(100))};
  // Measured while the reference kernel took twice as long, but bound by a link: it has no index.
  Measurement hosts = cpu_measurement();
  hosts.id = "four hosts";
  hosts.reference = us(200);
  CollectiveSample table;
  table.table.collective = "all_reduce";
  table.table.workers = 4;
  table.table.topology = "4 hosts";
  table.table.points = {{{1024}, us(90), us(100), us(110), us(1)}};
  hosts.collectives = {table};
  for (const auto& order : {std::vector{profiles, hosts}, std::vector{hosts, profiles}}) {
    const Calibration calibration = calibrate(order);
    CHECK(calibration.id == "visit");
    CHECK(calibration.reference == us(100));
    REQUIRE(calibration.collectives.size() == 1);
    CHECK(calibration.collectives[0].topology == "4 hosts");
    CHECK(calibration.collectives[0].points[0].p50 == us(100));
  }
  CHECK_THROWS_WITH(calibrate({hosts}), Contains("holds no profile"));
}

TEST_CASE("what cannot be calibrated is refused") {
  CHECK_THROWS_AS(calibrate({}), InputError);
  CHECK_THROWS_WITH(calibrate({cpu_measurement()}), Contains("holds no profile"));
  Measurement a = cpu_measurement();
  a.profiles = {sample(0, us(100), us(1200), us(100))};
  Measurement b = a;
  b.id = "another";
  CHECK_THROWS_WITH(calibrate({a, b}), Contains("different visits"));
  b = a;
  b.profiles[0].profile.layers[1].name = "renamed";
  CHECK_THROWS_WITH(calibrate({a, b}), Contains("different layers"));
}
