#include "calibration/validate.h"

#include <algorithm>

#include "calibration/check.h"
#include "calibration/compare_servers.h"
#include "calibration/validation_table.h"
#include "tests/catch.h"

using namespace lockstep;

namespace {

Time us(std::int64_t value) {
  return Time::microseconds(value);
}

/// One layer of 100 us forward and 200 us backward, on cores, and a flat all-reduce of 50 us.
Calibration cpu_calibration() {
  Calibration calibration;
  calibration.id = "visit";
  calibration.reference = us(100);
  Profile profile;
  profile.model = "tiny";
  profile.batch = 16;
  profile.layers.resize(1);
  profile.layers[0].name = "fc";
  profile.layers[0].kind = "linear";
  profile.layers[0].forward.device = us(100);
  profile.layers[0].backward.device = us(200);
  profile.layers[0].parameters = {{"weight", {4096}, 0}};
  calibration.profiles = {profile};
  calibration.profiles.push_back(profile);
  calibration.profiles[1].beside = 2;
  for (const char* collective : {"all_reduce", "broadcast"}) {
    CollectiveTable table;
    table.collective = collective;
    table.backend = "gloo";
    table.workers = 2;
    table.points = {{{1024}, us(50), us(50), us(50), {}}, {{8192}, us(50), us(50), us(50), {}}};
    calibration.collectives.push_back(table);
  }
  return calibration;
}

Run run_of(int workers, const std::vector<std::int64_t>& medians_us) {
  Run run;
  run.id = "tiny-" + std::to_string(workers);
  run.calibration = "visit";
  run.model = "tiny";
  run.batch_per_worker = 16;
  run.workers = workers;
  run.strategy.kind = workers == 1 ? "single" : "ddp";
  for (const std::int64_t median : medians_us) {
    RunRepeat repeat;
    repeat.process = static_cast<int>(run.repeats.size());
    repeat.step.p50 = us(median);
    repeat.speed_index = {us(100), us(100)};
    run.repeats.push_back(repeat);
  }
  return run;
}

}  // namespace

TEST_CASE("a prediction is compared with the median of the repeats' medians, at equal speed") {
  // Predicted: 100 + 200 us, then the bucket's all-reduce of 50 us that nothing hides: 350 us.
  // Measured 340, 800 and 354 us; the second ran at half the speed, so 400: median 354, range 60.
  Run run = run_of(2, {340, 800, 354});
  run.repeats[1].speed_index = {us(200), us(200)};
  const Validation validation = validate(cpu_calibration(), {run});
  REQUIRE(validation.groups.size() == 1);
  CHECK(validation.groups[0].name == "cpu");
  const ValidationPoint& point = validation.groups[0].points.at(0);
  CHECK(point.predicted == us(350));
  CHECK(point.measured == us(354));
  CHECK(point.measured_normalised == us(354));
  CHECK(point.repeat_spread == Approx(60.0 / 354));
  CHECK(point.error == Approx(350.0 / 354 - 1));
  CHECK(validation.groups[0].mean_error == Approx(4.0 / 354));
}

TEST_CASE("n = 1 and unstable points are listed and not averaged") {
  Run unstable = run_of(2, {700});
  unstable.stable = false;
  const Validation validation =
      validate(cpu_calibration(), {run_of(1, {150}), unstable, run_of(2, {350})});
  REQUIRE(validation.groups.size() == 1);
  CHECK(validation.groups[0].points.size() == 3);
  CHECK(validation.groups[0].points[0].error == Approx(1.0));
  CHECK(validation.groups[0].mean_error == Approx(0).margin(1e-12));
  CHECK(validation.groups[0].worst_error == Approx(0).margin(1e-12));
  const std::string table = to_table(validation);
  CHECK_THAT(table, Contains("n = 1, not averaged"));
  CHECK_THAT(table, Contains("unstable, not averaged"));
  CHECK_THAT(table, Contains("over 1 points"));
}

TEST_CASE("a point is as stable as its steps, however much the index changed") {
  // The index rose by 60 % within the blocks. To the power of 1 that is 60 % of a step, of which 25
  // can be taken out; to the power of 0.4, 1.6^0.4 - 1 = 21 %.
  Run run = run_of(2, {350, 354, 360});
  for (RunRepeat& repeat : run.repeats) repeat.speed_change = 0.6;
  const auto stable = [&](double exponent) {
    Calibration calibration = cpu_calibration();
    calibration.drift_exponent = exponent;
    return validate(calibration, {run}).groups.at(0).points.at(0).stable;
  };
  CHECK_FALSE(stable(1));
  CHECK(stable(0.4));
  // Most of the repeats stand for all.
  run.repeats[0].speed_change = run.repeats[1].speed_change = 0.1;
  CHECK(stable(1));
  // 250 to 360 us at the same index: 110 / 305 = 36 % apart, above 25.
  run.repeats[0].step.p50 = us(250);
  CHECK_FALSE(stable(0.4));
  // The others at twice the index: 354 / 2^0.4 = 268 and 360 / 2^0.4 = 273, 9 % from 250.
  run.repeats[1].speed_index = run.repeats[2].speed_index = {us(200), us(200)};
  CHECK(stable(0.4));
  // Who waits does not drift.
  run.compute = Compute::replay;
  CHECK_FALSE(stable(0.4));
}

TEST_CASE("what cannot be predicted names its run") {
  Run run = run_of(2, {350});
  run.strategy.kind = "fsdp";
  CHECK_THROWS_WITH(validate(cpu_calibration(), {run}),
                    StartsWith("run tiny-2: strategy: 'fsdp' is not known"));
  CHECK_THROWS_WITH(validate(cpu_calibration(), {run_of(2, {0})}),
                    StartsWith("run tiny-2: its steps take no time"));
}

TEST_CASE("on GPUs strategies without buckets are a group of their own") {
  Calibration calibration = cpu_calibration();
  calibration.origin.machine.gpus.resize(2);
  Run run = run_of(2, {350});
  run.strategy.kind = "all_reduce";
  Run graph = run_of(2, {350});
  graph.graph = true;
  Run one_process = run_of(2, {350});
  one_process.strategy.kind = "data_parallel";
  const Validation validation = validate(calibration, {run, graph, one_process});
  REQUIRE(validation.groups.size() == 3);
  CHECK(validation.groups[0].name == "data_parallel");
  CHECK(validation.groups[1].name == "graph");
  CHECK(validation.groups[2].name == "other_strategies");
}

TEST_CASE("servers are a group of their own, and what they saw is compared") {
  Calibration calibration = cpu_calibration();
  calibration.collectives[1].topology = kOneHost;  // a broadcast of two stands for a message
  Run run = run_of(2, {400});
  run.strategy.kind = "parameter_server";
  run.strategy.staleness = std::nullopt;
  run.servers =
      ServerStatistics{.throughput = 80'000, .staleness = {{0, 1}, {1, 3}}, .traffic = {}};
  const Validation validation = validate(calibration, {run});
  REQUIRE(validation.groups.size() == 1);
  CHECK(validation.groups[0].name == "parameter_server");
  // Alone on the link and at the server, whose work takes no time here: 300 us, and a message of 50
  // each way.
  CHECK(validation.groups[0].points[0].predicted.us() == Approx(400).epsilon(1e-4));
  const std::string seen = compare_servers(calibration, run);
  CHECK_THAT(seen, Contains("80000.0") && Contains("1.00 |     0.75"));
  CHECK_THAT(seen, Contains("updates 1 behind   100.0 % |   75.0 %"));
  CHECK(compare_servers(calibration, run_of(2, {400})).empty());
}

TEST_CASE("a run that failed is not compared") {
  Run failed = run_of(2, {350});
  failed.failure = Failure{1, "killed", 3};
  CHECK(validate(cpu_calibration(), {failed, run_of(2, {})}).groups.empty());
}

TEST_CASE("on GPUs graph steps are a group of their own") {
  Calibration calibration = cpu_calibration();
  calibration.origin.machine.gpus.resize(2);
  for (CollectiveTable& table : calibration.collectives) table.backend = "nccl";
  calibration.profiles.push_back(calibration.profiles[1]);
  calibration.profiles[2].graph = true;
  Run graph = run_of(2, {350});
  graph.graph = true;
  const Validation validation = validate(calibration, {graph, run_of(2, {350})});
  REQUIRE(validation.groups.size() == 2);
  CHECK(validation.groups[0].name == "device_bound");
  CHECK(validation.groups[1].name == "graph");
}

TEST_CASE("validations of several visits are merged by group") {
  const Validation one = validate(cpu_calibration(), {run_of(2, {350})});
  const Validation two = validate(cpu_calibration(), {run_of(2, {700})});
  const Validation all = merge({one, two});
  CHECK(all.calibration == "visit, visit");
  REQUIRE(all.groups.size() == 1);
  CHECK(all.groups[0].points.size() == 2);
  CHECK(all.groups[0].mean_error == Approx(0.25));  // (0 + 50 %) / 2
  CHECK(all.groups[0].worst_error == Approx(0.5));
}

TEST_CASE("bounds on means, worst errors and unstable points") {
  Run unstable = run_of(2, {700});
  unstable.stable = false;
  const Validation validation = validate(cpu_calibration(), {run_of(2, {400}), unstable});
  // 350 / 400 - 1 = -12.5 %; one of two points is unstable.
  CHECK(check(validation, {}).empty());
  CHECK(check(validation, {0.13, 0.13, 0.5}).empty());
  CHECK(check({}, {std::nullopt, std::nullopt, 0.5}).size() == 1);  // nothing to check
  CHECK(check(validation, {0.12, std::nullopt, std::nullopt}).size() == 1);
  CHECK(check(validation, {std::nullopt, 0.12, std::nullopt}).size() == 1);
  CHECK(check(validation, {std::nullopt, std::nullopt, 0.4}).size() == 1);
  CHECK(check(validate(cpu_calibration(), {unstable}), {0.9, std::nullopt, std::nullopt}).size() ==
        1);
}

TEST_CASE("buckets are compared on the slowest rank") {
  Run run = run_of(2, {350});
  run.ranks.resize(2);
  run.ranks[0].step = us(340);
  run.ranks[1].step = us(350);
  run.ranks[1].buckets = {{{4096}, us(310), us(310), us(350)}};
  const auto buckets = compare_buckets(cpu_calibration(), run);
  REQUIRE(buckets.size() == 1);
  CHECK(buckets[0].predicted.ready == us(300));
  CHECK(buckets[0].predicted.done == us(350));
  CHECK(buckets[0].measured.ready == us(310));
  CHECK_THAT(bucket_table(cpu_calibration(), run), Contains("-2.9 %"));  // -10 / 350
  CHECK(bucket_table(cpu_calibration(), run_of(2, {350})).empty());
  // The share is of the median step, not of the first repeat's.
  run.repeats = run_of(2, {3500, 350, 340}).repeats;
  CHECK_THAT(bucket_table(cpu_calibration(), run), Contains("-2.9 %"));
  run.sync = Sync::none;  // what was recorded is not what was asked
  CHECK(compare_buckets(cpu_calibration(), run).empty());
  CHECK_THAT(bucket_table(cpu_calibration(), run), Contains("tiny-2: no buckets"));
}

TEST_CASE("moments of buckets are shares of the steps that they were recorded in") {
  // Predicted 300, 300 and 350 of 350 us. Recording has slowed the step to 700, and rank 1 is the
  // last to be ready in it, though its steps were the shorter ones.
  Run run = run_of(2, {350});
  run.ranks.resize(2);
  run.ranks[0].step = us(350);
  run.ranks[0].buckets = {{{4096}, us(400), us(400), us(700)}};
  run.ranks[1].step = us(340);
  run.ranks[1].buckets = {{{4096}, us(600), us(614), us(700)}};
  run.ranks[1].forward = us(200);
  run.ranks[1].backward = us(450);
  run.ranks[1].optimizer = us(50);
  const auto buckets = compare_buckets(cpu_calibration(), run);
  REQUIRE(buckets.size() == 1);
  CHECK(buckets[0].measured.ready == us(600));
  CHECK(buckets[0].predicted_step == us(350));
  CHECK(buckets[0].measured_step == us(700));
  const auto share = [&](Time predicted, Time measured) {
    return share_later(buckets[0], predicted, measured);
  };
  CHECK(share(buckets[0].predicted.launch, buckets[0].measured.launch) ==
        Approx(300.0 / 350 - 614.0 / 700));
  CHECK(share(buckets[0].predicted.done, buckets[0].measured.done) == Approx(0).margin(1e-9));
  CHECK_THAT(bucket_table(cpu_calibration(), run), Contains("-2.0 %"));
}

TEST_CASE("where repeats differ more than is wanted, half their range is allowed of a point") {
  // Eager on GPUs, with a host that is all that takes time: 90 % off and more are not looked at
  // here, but what is allowed: 5 % of the one, half of (400 - 300) / 350 of the other.
  Calibration calibration = cpu_calibration();
  calibration.origin.machine.gpus.resize(2);
  for (Profile& profile : calibration.profiles) {
    for (Layer& layer : profile.layers) {
      layer.forward.host = layer.backward.host = us(1000);
      layer.forward.device = layer.backward.device = us(1);
      layer.forward.launches = layer.backward.launches = 1;
    }
  }
  const Validation validation =
      validate(calibration, {run_of(2, {350}), run_of(2, {300, 350, 400})});
  const auto group = std::ranges::find(validation.groups, "host_bound", &ValidationGroup::name);
  REQUIRE(group != validation.groups.end());
  CHECK(group->wanted_mean == Approx(0.05));
  REQUIRE(group->allowed_mean);
  CHECK(*group->allowed_mean == Approx((0.05 + 50.0 / 350) / 2));
  ValidationGroup missed{"host_bound", 0.08, 0.1, {}, 0.05};
  CHECK_FALSE(held(missed));
  missed.allowed_mean = 0.09;
  CHECK(held(missed));
}

TEST_CASE("a replay in slow motion waits as many times as long, and communicates as ever") {
  // 4 x (100 + 200) us, then the all-reduce of 50 us.
  Run run = run_of(2, {1250});
  run.compute = Compute::replay;
  run.slow_motion = 4;
  const Validation validation = validate(cpu_calibration(), {run});
  REQUIRE(validation.groups.size() == 1);
  CHECK(validation.groups[0].name == "cpu_replay");
  CHECK(validation.groups[0].points.at(0).predicted == us(1250));
  CHECK_THAT(to_table(validation), Contains("replayed 4 times slower"));
}

TEST_CASE("on GPUs launch and end of each bucket are shares of the step in a group of their own") {
  // Predicted: ready and launched at 300 us, done at 350; 50 us are exposed.
  Calibration calibration = cpu_calibration();
  calibration.origin.machine.gpus.resize(1);
  Run run = run_of(2, {400});
  run.ranks.resize(1);
  run.ranks[0].buckets = {{{4096}, us(310), us(312), us(370)}};
  const Validation validation = validate(calibration, {run});
  const auto group = std::ranges::find(validation.groups, "buckets", &ValidationGroup::name);
  REQUIRE(group != validation.groups.end());
  REQUIRE(group->points.size() == 3);
  CHECK(group->points[0].run == "tiny-2, bucket 0 launched");
  CHECK(group->points[0].error == Approx(-12.0 / 400));
  CHECK(group->points[1].error == Approx(-20.0 / 400));
  CHECK(group->points[2].run == "tiny-2, exposed");
  CHECK(group->points[2].error == Approx(-10.0 / 400));
  CHECK(group->mean_error == Approx(14.0 / 400));
  CHECK(group->wanted_worst == Approx(0.05));
  CHECK_THAT(to_table(validation), Contains("bucket 0 done"));
  CHECK(check(validation, {0.01, 0.01, std::nullopt}).size() == 2);  // of the step's own group
}

TEST_CASE("over a network only the computing is taken back to the calibration's speed") {
  // One worker a host, 1 GB/s and no latency. Predicted: 100 + 200 us of computing, then a ring
  // over two hosts, which moves 2 (n - 1) / n S = S each way. At half the speed computing takes 600
  // us and the ring what it took, so a measured step of 600 us + ring is exactly the predicted one.
  const Calibration calibration = cpu_calibration();
  PlatformOptions platform;
  platform.devices_per_host = 1;
  platform.network = NetworkOptions{Bandwidth{1'000'000'000}, Time{}};
  const Time predicted =
      validate(calibration, {run_of(2, {1000})}, platform).groups.at(0).points.at(0).predicted;
  const Time ring = predicted - us(300);
  REQUIRE(ring > Time{});
  Run run = run_of(2, {1000});
  run.repeats[0].speed_index = {us(200), us(200)};
  run.repeats[0].step.p50 = us(600) + ring;
  const Validation validation = validate(calibration, {run}, platform);
  CHECK(validation.groups.at(0).name == "hosts");
  CHECK(validation.groups.at(0).points.at(0).error == Approx(0).margin(1e-6));
}

TEST_CASE("the share of steps in the predicted band is taken at equal speed") {
  // Worker 1 stops for 0 or 100 us, listed by turns, before forward: steps of 350 and 450 us, so
  // p10 = 350 and p90 = 450.
  Run run = run_of(2, {400, 800});
  run.stragglers = {
      {.rank = 1,
       .factor = 1,
       .delay = us(100),
       .part = StepPart::forward,
       .delay_varies = {.kind = Variability::Kind::samples, .listed = true, .values = {0, 1}}}};
  CHECK_FALSE(validate(cpu_calibration(), {run}).groups.at(0).points.at(0).in_band);
  // 350, 400 and 450 us are inside, 349 and 451 are not; twice as slow, 700 and 900 are, too.
  run.repeats[0].samples = {us(349), us(350), us(400), us(450), us(451)};
  run.repeats[1].samples = {us(699), us(700), us(900)};
  run.repeats[1].speed_index = {us(200), us(200)};
  const Validation validation = validate(cpu_calibration(), {run});
  const ValidationPoint& point = validation.groups.at(0).points.at(0);
  REQUIRE(point.in_band);
  CHECK(*point.in_band == Approx(5.0 / 8));
  CHECK(in_band(validation.groups.at(0)) == point.in_band);
  CHECK_THAT(to_table(validation), Contains("62 % of steps in the predicted p10 to p90"));
}

TEST_CASE("options of ddp and stragglers are compared apart") {
  Run compressed = run_of(2, {350}), late = run_of(2, {1050});
  compressed.id = "compressed";
  compressed.strategy.compression = Compression::bf16;
  late.stragglers = {{.rank = 0, .factor = 3, .delay = {}, .part = StepPart::step}};
  const Validation validation = validate(cpu_calibration(), {run_of(2, {350}), compressed, late});
  REQUIRE(validation.groups.size() == 3);
  CHECK(validation.groups[0].name == "cpu");
  CHECK(validation.groups[1].name == "ddp_options");
  CHECK(validation.groups[2].name == "stragglers");
}

TEST_CASE("stragglers of one rank add up") {
  // 350 us, twice 300 us of compute and 50 us later: 700.
  Run run = run_of(2, {700});
  run.stragglers = {{.rank = 1, .factor = 2, .delay = {}, .part = StepPart::step},
                    {.rank = 0, .factor = 1, .delay = us(50), .part = StepPart::step, .all = true}};
  CHECK(validate(cpu_calibration(), {run}).groups.at(0).points.at(0).predicted == us(700));
}

TEST_CASE("a run of unlike workers is predicted from the calibrations of all of them") {
  // Cores compute 300 us and copy for 20; a GPU, 100 us and none to launch, adds in 10 us what the
  // cores gave; the cores copy the sum for 30. A step on the cores: 300 + 20 + 10 + 30 = 360 us.
  Calibration gpus = cpu_calibration();
  gpus.id = "gpus";
  gpus.origin.machine.gpus.resize(1);
  gpus.collectives.clear();
  for (Profile& profile : gpus.profiles) {
    profile.layers[0].forward.device = us(40);
    profile.layers[0].backward.device = us(60);
  }
  gpus.copies = {{"host_to_device", {{{4096}, 1, us(20), {}}}},
                 {"device_to_host", {{{4096}, 1, us(30), {}}}},
                 {"add", {{{4096}, 2, us(10), {}}}}};
  Run run = run_of(2, {400});
  run.calibration = "gpus";
  run.strategy.kind = "heterogeneous";
  run.strategy.split = {16, 16};
  run.devices = {{"gpus", 1}, {"visit", 1}};
  const std::vector<Calibration> known{gpus, cpu_calibration()};
  const Validation validation = validate(gpus, {run}, {}, {}, known);
  REQUIRE(validation.groups.size() == 1);
  CHECK(validation.groups[0].name == "heterogeneous_gpus");
  CHECK(validation.groups[0].points.at(0).predicted == us(360));
  CHECK(compare_buckets(gpus, run).empty());
  CHECK_THROWS_WITH(validate(gpus, {run}), Contains("calibration \"gpus\" is not given"));
  run.devices[1].calibration = "elsewhere";
  CHECK_THROWS_WITH(validate(gpus, {run}, {}, {}, known), Contains("elsewhere"));
}
