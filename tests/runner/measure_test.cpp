// lockstep-measure as its users start it: a process that starts others.

#include <algorithm>
#include <csignal>
#include <vector>

#include "sim/core/error.h"
#include "sim/records/calibration.h"
#include "sim/records/measurement.h"
#include "sim/records/run.h"
#include "tests/catch.h"
#include "tests/records/temporary_folder.h"
#include "tests/runner/process.h"

namespace lockstep::runner {
namespace {

using testing::slurp;
using testing::TemporaryFolder;

using Process = testing::MeasureProcess;
using testing::wait_for_worker;

std::vector<std::string> small_measurement(const TemporaryFolder& folder,
                                           const std::string& steps = "2",
                                           const std::string& strategies = "single,ddp") {
  return {"--model", "small_cnn",        "--batch",      "4",         "--workers",
          "2",       "--steps",          steps,          "--repeats", "1",
          "-o",      folder.file("out"), "--strategies", strategies};
}

}  // namespace

TEST_CASE("Bad flags are one line and exit code 2") {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--no-such-flag"},
        {"--model", "no_such_model", "-o", folder.file("out")},
        {"--batch", "0"},
        {"--workers", "two"},
        {"--strategies", "magic"},
        {"--strategies", "single,data_parallel"},
        {"--data", "imagenet"},
        {"--data", "fashion-mnist", "--data-dir", folder.path().string()},
        {"--data", "cifar10"},
        {"--data", "cifar10", "--data-dir", folder.path().string()},
        {"--data", "fashion-mnist", "--model", "vgg16", "-o", folder.file("out")},
        {"--loaders", "2"},
        {"--bucket-cap", "25"},
        {"--first-bucket-cap", "0MiB"},
        {"--cycle-time", "0ms"},
        {"--cycle-time", "1"},
        {"--fusion-threshold", "64"},
        {"--horovod-preset", "v1"},
        {"--no-batchnorm", "--model", "vgg11"},
        {"--dropout", "--model", "vgg11"},
        {"--precision", "tf32"},
        {"--precision", "fp8"},
        {"--batches", "auto"},
        {"--batches", "16,auto", "--device", "cuda"},
        {"--collectives", "--workers", "1"},
        {"--straggler", "rank=2,factor=2", "--workers", "2"},
        {"--straggler", "rank=1"},
        {"--straggler", "{worker: 0, slowdown: {kind: pareto, shape: 1}}"},
        {"--split", "6,2"},
        {"--split", "6,0", "--strategies", "heterogeneous"},
        {"--split", "6,3", "--batch", "4", "--strategies", "heterogeneous"},
        {"--split", "4,2,2", "--batch", "4", "--strategies", "heterogeneous"},
        {"--strategies", "heterogeneous", "--device", "cuda"},
        {"--link", "fast"},
        {"--link-latency", "20us"},
        {"--link", "1Gbit/s", "--link-latency", "20"},
        {"--slow-link", "200Mbit/s"},
        {"--compute", "replay"},
        {"--calibration", folder.file("none.json")},
        {"--calibration", folder.file("none.json"), "--collectives"},
        {"--compute", "replay", "--calibration", folder.file("none.json")},
        {"--out", "/proc/no/such/folder"}}) {
    Process process(folder, arguments);
    CHECK(process.exit_code() == 2);
    const std::string errors = process.errors();
    CHECK_THAT(errors, StartsWith("lockstep-measure: "));
    CHECK(std::ranges::count(errors, '\n') == 1);
  }
}

TEST_CASE("Two workers measure, train alike, and leave records") {
  const TemporaryFolder folder;
  Process process(folder, small_measurement(folder, "2", "single,all_reduce,gather_scatter,ddp"));
  INFO(process.errors());
  REQUIRE(process.exit_code() == 0);

  const Measurement measurement = read_measurement(folder.file("out/measurement.json"));
  CHECK(measurement.profiles.size() == 3);  // alone, and side by side on both ranks
  CHECK(measurement.collectives.size() == 4);
  CHECK(measurement.copies.size() == 2);
  CHECK(measurement.reference > Time{});
  for (const ProfileSample& sample : measurement.profiles) {
    Time sum = sample.profile.optimizer.device + sample.profile.step_overhead.device;
    for (const Layer& layer : sample.profile.layers) {
      sum += layer.forward.device + layer.backward.device;
    }
    CHECK(sum > Time{});
    CHECK(parameter_bytes(sample.profile) == Bytes{114'186 * 4});
  }

  const std::vector<Run> runs = read_runs(folder.file("out/runs.json"));
  REQUIRE(runs.size() == 4);
  for (const Run& run : runs) {
    CHECK(run.compute == Compute::real);
    if (run.workers == 1) continue;
    INFO(run.strategy.kind);
    REQUIRE(run.parity);
    CHECK(run.parity->relative_l2 <= 1e-4);
    CHECK(run.parity->relative_l2 >= 0);
    REQUIRE(run.ranks.size() == 2);
    // Three convolutions, three norms and a linear layer of two parameters each.
    if (run.strategy.kind != "ddp") CHECK(run.ranks[1].buckets.size() == 14);
  }
  const auto ddp =
      std::ranges::find(runs, std::string("ddp"), [](const Run& run) { return run.strategy.kind; });
  REQUIRE(ddp != runs.end());
  CHECK(ddp->workers == 2);
  for (const RunRank& rank : ddp->ranks) {
    // 456,744 bytes of gradients: less than the first cap of 1 MiB, so one bucket.
    REQUIRE(rank.buckets.size() == 1);
    CHECK(rank.buckets[0].bytes == Bytes{114'186 * 4});
    CHECK(rank.buckets[0].ready <= rank.buckets[0].launch);
    CHECK(rank.buckets[0].launch < rank.buckets[0].done);
  }
}

TEST_CASE("Workers with unequal shares train as one device does on all of them") {
  const TemporaryFolder folder;
  std::vector<std::string> arguments = small_measurement(folder, "2", "single,heterogeneous");
  arguments.insert(arguments.end(), {"--split", "6,2"});
  Process process(folder, arguments);
  INFO(process.errors());
  REQUIRE(process.exit_code() == 0);
  const std::vector<Run> runs = read_runs(folder.file("out/runs.json"));
  REQUIRE(runs.size() == 2);
  const Run& run = runs[1];
  CHECK(run.strategy.kind == "heterogeneous");
  CHECK(run.strategy.split == std::vector<int>{6, 2});
  CHECK(run.batch_per_worker == 4);
  REQUIRE(run.parity);
  CHECK(run.parity->relative_l2 <= 1e-4);
  REQUIRE(run.ranks.size() == 2);
  REQUIRE(run.ranks[0].buckets.size() == 1);
  CHECK(run.ranks[0].buckets[0].bytes == Bytes{114'186 * 4});
}

TEST_CASE("A slow worker gets fewer samples where shares are measured") {
  const TemporaryFolder folder;
  std::vector<std::string> arguments = small_measurement(folder, "2", "heterogeneous");
  arguments[3] = "16";
  arguments.insert(arguments.end(), {"--split", "measured", "--straggler", "rank=1,factor=4"});
  Process process(folder, arguments);
  INFO(process.errors());
  REQUIRE(process.exit_code() == 0);
  CHECK_THAT(process.errors(), Contains("split, round 1: 16 + 16 samples"));
  const std::vector<Run> runs = read_runs(folder.file("out/runs.json"));
  REQUIRE(runs.size() == 1);
  const std::vector<int>& split = runs[0].strategy.split;
  REQUIRE(split.size() == 2);
  CHECK(split[0] + split[1] == 32);
  CHECK(split[0] > split[1]);
}

TEST_CASE("Options of strategies are measured, and their records carry them") {
  const TemporaryFolder folder;
  std::vector<std::string> words = small_measurement(folder, "3", "ddp,horovod");
  for (const char* word :
       {"--accumulate", "2", "--no-sync", "--find-unused-parameters", "--compression", "bf16",
        "--cycle-time", "3ms", "--fusion-threshold", "0B"}) {
    words.emplace_back(word);
  }
  Process process(folder, words);
  INFO(process.errors());
  REQUIRE(process.exit_code() == 0);
  const std::vector<Run> runs = read_runs(folder.file("out/runs.json"));
  REQUIRE(runs.size() == 2);
  const Run& ddp = runs[runs[0].strategy.kind == "ddp" ? 0 : 1];
  CHECK(ddp.id == "small_cnn-b4-ddp-accumulate2-nosync-unused-bf16gradients-n2");
  CHECK(ddp.strategy.accumulate == 2);
  CHECK(ddp.strategy.no_sync);
  CHECK(ddp.strategy.find_unused_parameters);
  CHECK(ddp.strategy.compression == Compression::bf16);
  for (const RunRank& rank : ddp.ranks) {
    // Of two passes one reduces, in half the bytes.
    REQUIRE(rank.buckets.size() == 1);
    CHECK(rank.buckets[0].bytes == Bytes{114'186 * 2});
  }
  const Run& horovod = runs[runs[0].strategy.kind == "ddp" ? 1 : 0];
  CHECK(horovod.id == "small_cnn-b4-horovod-cycle3000us-fusion0-n2");
  CHECK(horovod.strategy.cycle_time == Time::milliseconds(3));
  CHECK(horovod.strategy.fusion_threshold == Bytes{});
  CHECK(horovod.strategy.accumulate == 1);
  for (const RunRank& rank : horovod.ranks) CHECK(rank.buckets.size() == 14);
}

TEST_CASE("A network with tied weights and dropout is measured in bf16, and checked without both") {
  const TemporaryFolder folder;
  Process process(folder, {"--model",
                           "small_gpt",
                           "--dropout",
                           "--batch",
                           "2",
                           "--workers",
                           "2",
                           "--steps",
                           "2",
                           "--repeats",
                           "1",
                           "--precision",
                           "bf16",
                           "--seed",
                           "3",
                           "--strategies",
                           "single,all_reduce,gather_scatter,ddp",
                           "--bucket-cap",
                           "100KiB",
                           "--first-bucket-cap",
                           "100KiB",
                           "-o",
                           folder.file("out")});
  INFO(process.errors());
  REQUIRE(process.exit_code() == 0);
  constexpr std::int64_t kWords = 1000 * 64 * 4;    // bytes of the tied weight
  constexpr std::int64_t kGradients = 168'192 * 4;  // of all parameters
  const Measurement measurement = read_measurement(folder.file("out/measurement.json"));
  REQUIRE(measurement.profiles.size() == 3);
  for (const ProfileSample& sample : measurement.profiles) {
    CHECK(sample.profile.model == "small_gpt_dropout");
    CHECK(sample.profile.precision == "bf16");
    CHECK(parameter_bytes(sample.profile) == Bytes{kGradients});
  }
  for (const Run& run : read_runs(folder.file("out/runs.json"))) {
    INFO(run.id);
    CHECK(run.precision == "bf16");
    CHECK_THAT(run.id, Contains("-bf16-n"));
    if (run.workers == 1) continue;
    REQUIRE(run.parity);
    CHECK(run.parity->relative_l2 <= 1e-4);
    Bytes sum;
    for (const BucketTimes& bucket : run.ranks.at(0).buckets) sum += bucket.bytes;
    CHECK(sum == Bytes{kGradients});
    const auto& buckets = run.ranks.at(0).buckets;
    // DDP: as they get ready, the tied weight last. One by one: in the order of the parameters.
    const Bytes words = run.strategy.kind == "ddp" ? buckets.back().bytes : buckets.front().bytes;
    CHECK(words >= Bytes{kWords});
  }
}

TEST_CASE("A replay communicates as a training run does and records what it was") {
  const TemporaryFolder folder;
  Calibration calibration;
  calibration.id = "made-up";
  calibration.origin.machine.cores = 2;
  calibration.reference = Time::milliseconds(10);
  Profile profile;
  profile.model = "two_layers";
  profile.batch = 4;
  const Cost cost{.host = {}, .device = Time::milliseconds(2)};
  profile.layers = {{.name = "a",
                     .kind = "conv",
                     .forward = cost,
                     .backward = cost,
                     .backward_order = 1,
                     .parameters = {{"weight", {400'000}, 1}},
                     .buffers = {},
                     .output = {}},
                    {.name = "b",
                     .kind = "linear",
                     .forward = cost,
                     .backward = cost,
                     .backward_order = 0,
                     .parameters = {{"weight", {200'000}, 0}},
                     .buffers = {},
                     .output = {}}};
  profile.step = Time::milliseconds(8);
  calibration.profiles = {profile};
  write_calibration(calibration, folder.file("calibration.json"));
  Process process(folder, {"--compute",
                           "replay",
                           "--calibration",
                           folder.file("calibration.json"),
                           "--model",
                           "two_layers",
                           "--batch",
                           "4",
                           "--steps",
                           "3",
                           "--repeats",
                           "2",
                           "--strategies",
                           "single,all_reduce,gather_scatter,ddp",
                           "--first-bucket-cap",
                           "100KiB",
                           "--straggler",
                           "rank=1,factor=2",
                           "-o",
                           folder.file("out")});
  INFO(process.errors());
  REQUIRE(process.exit_code() == 0);
  CHECK(slurp(folder.file("out/measurement.json")).empty());
  const std::vector<Run> runs = read_runs(folder.file("out/runs.json"));
  REQUIRE(runs.size() == 4);
  for (const Run& run : runs) {
    INFO(run.id);
    CHECK(run.compute == Compute::replay);
    CHECK(run.calibration == "made-up");
    CHECK_FALSE(run.parity);
    REQUIRE(run.repeats.size() == 2);
    CHECK(run.repeats[0].speed_index.before == calibration.reference);
    const bool shared = run.workers == 2;
    // 4 x 2 ms; 16 ms of the slow worker, whom rank 0 waits for, less what it began earlier.
    CHECK(run.repeats[0].step.p50 >= Time::milliseconds(shared ? 12 : 8));
    CHECK(run.stragglers.size() == (shared ? 1 : 0));
    if (!shared) continue;
    REQUIRE(run.ranks.size() == 2);
    const auto& buckets = run.ranks[1].buckets;
    REQUIRE(buckets.size() == 2);
    // Per parameter in their order; DDP in the order in which they got ready.
    CHECK(buckets[0].bytes == Bytes{run.strategy.kind == "ddp" ? 200'000 : 400'000});
  }
}

TEST_CASE("Collectives can be measured alone") {
  const TemporaryFolder folder;
  Process process(folder, {"--collectives", "--repeats", "1", "-o", folder.file("out")});
  INFO(process.errors());
  REQUIRE(process.exit_code() == 0);
  const Measurement measurement = read_measurement(folder.file("out/measurement.json"));
  CHECK(measurement.profiles.empty());
  REQUIRE(measurement.collectives.size() == 4);
  for (const CollectiveSample& sample : measurement.collectives) {
    CHECK(sample.table.topology == "one host");
    CHECK(sample.table.points.size() >= 8);
  }
}

TEST_CASE("A killed worker is named, the other is stopped, and the exit code is 3") {
  const TemporaryFolder folder;
  Process process(folder, small_measurement(folder, "100000"));
  const pid_t first = wait_for_worker(process.pid(), 0);
  const pid_t second = wait_for_worker(process.pid(), 1);
  kill(second, SIGKILL);
  CHECK(process.exit_code() == 3);
  CHECK_THAT(process.errors(), Contains("rank 1 was killed by signal 9"));
  CHECK(kill(first, 0) != 0);
}

TEST_CASE("A worker that hangs is named") {
  const TemporaryFolder folder;
  auto arguments = small_measurement(folder, "100000");
  arguments.insert(arguments.end(), {"--silence", "5"});
  Process process(folder, arguments);
  kill(wait_for_worker(process.pid(), 1), SIGSTOP);
  CHECK(process.exit_code() == 3);
  CHECK_THAT(process.errors(), Contains("rank 1 has not moved for 5 s"));
}

TEST_CASE("Ctrl-C ends the workers and is no success") {
  const TemporaryFolder folder;
  Process process(folder, small_measurement(folder, "100000"));
  const pid_t worker = wait_for_worker(process.pid(), 0);
  kill(process.pid(), SIGINT);
  CHECK(process.exit_code() == 3);
  CHECK_THAT(process.errors(), Contains("interrupted"));
  CHECK(kill(worker, 0) != 0);
}

}  // namespace lockstep::runner
