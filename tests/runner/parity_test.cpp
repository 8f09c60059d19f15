// Strategies with their options train as one device does, on two and three real workers.
#include <algorithm>
#include <string>
#include <vector>

#include "runner/measure/parity.h"
#include "sim/records/run.h"
#include "tests/catch.h"
#include "tests/runner/process.h"

namespace lockstep::runner {
namespace {

using Words = std::vector<std::string>;

/// How far a strategy trains from one device, by the record of a run of few steps.
Parity parity_of(int workers, const std::string& strategy, const Words& options) {
  const testing::TemporaryFolder folder;
  Words words{"--model", "small_cnn", "--batch", "4", "--steps", "2", "--repeats", "1"};
  const std::string calibration =
      LOCKSTEP_SOURCE_DIR "/calibration/data/cpu-2cores-2026-11-28/calibration.json";
  const Words more{"--workers", std::to_string(workers), "--strategies",
                   strategy,    "--calibration",         calibration,
                   "-o",        folder.file("out")};
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), options.begin(), options.end());
  testing::MeasureProcess process(folder, words);
  INFO(process.errors());
  REQUIRE(process.exit_code() == 0);
  const Run run = read_run(folder.file("out/runs.json"));
  REQUIRE(run.parity);
  return *run.parity;
}

}  // namespace

TEST_CASE("Horovod trains as one device does, fused as it comes, all in one, and not at all") {
  CHECK(parity_of(2, "horovod", {}).relative_l2 <= kParityBound);
  CHECK(parity_of(3, "horovod", {"--horovod-preset", "v0.20"}).relative_l2 <= kParityBound);
  CHECK(parity_of(3, "horovod", {"--cycle-time", "200ms"}).relative_l2 <= kParityBound);
  CHECK(parity_of(2, "horovod", {"--fusion-threshold", "0B"}).relative_l2 <= kParityBound);
}

TEST_CASE("Several passes train as one device does with all their samples") {
  CHECK(parity_of(2, "ddp", {"--accumulate", "3"}).relative_l2 <= kParityBound);
  CHECK(parity_of(3, "ddp", {"--accumulate", "2", "--no-sync"}).relative_l2 <= kParityBound);
  const Words unused{"--accumulate", "2", "--find-unused-parameters", "--bucket-cap", "100KiB"};
  CHECK(parity_of(3, "ddp", unused).relative_l2 <= kParityBound);
}

TEST_CASE("Compressed gradients train within their rounding, and not as the others do") {
  StrategyOptions compressed;
  compressed.compression = Compression::bf16;
  for (const int workers : {2, 3}) {
    const Words words{"--compression", "bf16", "--accumulate", "2"};
    const double apart = parity_of(workers, "ddp", words).relative_l2;
    CHECK(apart <= parity_bound(compressed, workers));
    CHECK(apart > 1e-5);  // it was rounded
  }
}

}  // namespace lockstep::runner
