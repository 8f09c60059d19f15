#include "runner/measure/launch_parts.h"

#include <filesystem>

#include "runner/measure/out_of_memory.h"
#include "tests/catch.h"

namespace lockstep::runner {
namespace {

Run run_of(int workers, int process, int rank, Time step, bool graph) {
  Run run;
  run.model = "small_cnn";
  run.batch_per_worker = 32;
  run.workers = workers;
  run.graph = graph;
  RunRepeat repeat;
  repeat.process = process;
  repeat.steps = 1;
  repeat.step.p50 = step;
  repeat.speed_index = {step, step};
  repeat.samples = {step};
  run.repeats = {repeat};
  RunRank seen;
  seen.rank = rank;
  run.ranks = {seen};
  return run;
}

CollectiveSample sample_of(int workers) {
  CollectiveSample sample;
  sample.table.collective = "all_reduce";
  sample.table.workers = workers;
  sample.table.points.push_back({.bytes = kKiB, .p10 = {}, .p50 = {}, .p90 = {}, .host = {}});
  return sample;
}

TEST_CASE("the parts of a visit become one measurement and one run per configuration") {
  const auto folder = std::filesystem::temp_directory_path() / "lockstep_launch_parts_test";
  std::filesystem::remove_all(folder);
  for (int process = 0; process < 2; ++process) {
    for (int rank = 0; rank < 2; ++rank) {
      Measurement measurement;
      if (rank == 0) measurement.collectives.push_back(sample_of(2));
      measurement.launch_queue = process == 0 ? 1024 : 0;
      const Time step = Time::milliseconds(1 + process);
      write_part(folder.string(), {2, process, rank}, measurement,
                 {run_of(2, process, rank, step, false), run_of(2, process, rank, step, true)});
    }
  }
  Measurement measurement;
  std::vector<Run> runs;
  for (int process = 0; process < 3; ++process) {  // the third launch left nothing
    merge_launch(folder.string(), 2, process, measurement, runs);
  }
  std::filesystem::remove_all(folder);

  CHECK(measurement.collectives.size() == 2);
  CHECK(measurement.launch_queue == 1024);
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].graph != runs[1].graph);
  for (const Run& run : runs) {
    REQUIRE(run.repeats.size() == 2);
    CHECK(run.repeats[0].process == 0);
    CHECK(run.repeats[1].samples == std::vector<Time>{Time::milliseconds(2)});
    REQUIRE(run.ranks.size() == 2);  // of the last repeat
    CHECK(run.ranks[1].rank == 1);
  }
  // Eight times: 1 ms four times, 2 ms four times; the fifth smallest is 2 ms.
  CHECK(reference_of(measurement, runs) == Time::milliseconds(2));
}

TEST_CASE("a run that did not fit is kept, unless it fitted in another repeat") {
  const auto folder = std::filesystem::temp_directory_path() / "lockstep_launch_parts_memory_test";
  std::filesystem::remove_all(folder);
  const Time step = Time::milliseconds(1);
  Run never = run_of(1, 0, 0, step, false);
  never.batch_per_worker = 2048;
  never.repeats.clear();
  never.ranks.clear();
  never = out_of_memory(std::move(never), 0);
  Run later = never;
  later.batch_per_worker = 512;
  Run fits = run_of(1, 1, 0, step, false);
  fits.batch_per_worker = 512;
  write_part(folder.string(), {1, 0, 0}, {}, {never, later});
  write_part(folder.string(), {1, 1, 0}, {}, {never, fits});
  write_part(folder.string(), {1, 2, 0}, {}, {never, later});
  Measurement measurement;
  std::vector<Run> runs;
  for (int process = 0; process < 3; ++process) {
    merge_launch(folder.string(), 1, process, measurement, runs);
  }
  std::filesystem::remove_all(folder);
  REQUIRE(runs.size() == 2);
  CHECK(runs[0] == never);
  CHECK_FALSE(runs[1].failure);
  CHECK(runs[1].repeats.size() == 1);
  CHECK(runs[1].ranks.size() == 1);
}

TEST_CASE("runs of two precisions are two runs") {
  const auto folder = std::filesystem::temp_directory_path() / "lockstep_launch_parts_bf16_test";
  std::filesystem::remove_all(folder);
  Run exact = run_of(1, 0, 0, Time::milliseconds(2), false);
  Run rounded = run_of(1, 0, 0, Time::milliseconds(1), false);
  rounded.precision = "bf16";
  write_part(folder.string(), {1, 0, 0}, {}, {exact, rounded});
  Measurement measurement;
  std::vector<Run> runs;
  merge_launch(folder.string(), 1, 0, measurement, runs);
  std::filesystem::remove_all(folder);
  CHECK(runs == std::vector<Run>{exact, rounded});
}

TEST_CASE("what the worker on cores measured beside GPUs is kept apart") {
  const auto folder = std::filesystem::temp_directory_path() / "lockstep_launch_parts_mixed_test";
  std::filesystem::remove_all(folder);
  for (int rank = 0; rank < 3; ++rank) {
    Measurement measurement;
    measurement.profiles.resize(1);
    measurement.profiles[0].rank = rank;
    measurement.profiles[0].profile.layers.resize(1);
    measurement.profiles[0].profile.batch = 1;
    write_part(folder.string(), {3, 0, rank}, measurement,
               {run_of(3, 0, rank, Time::milliseconds(1 + rank), false)});
  }
  CHECK(runs_of_part(folder.string(), {3, 0, 2}).size() == 1);
  CHECK(runs_of_part(folder.string(), {3, 1, 0}).empty());
  Measurement of_gpus, of_cores;
  std::vector<Run> runs;
  merge_launch(folder.string(), 3, 0, of_gpus, runs, &of_cores);
  std::filesystem::remove_all(folder);
  CHECK(of_gpus.profiles.size() == 2);
  REQUIRE(of_cores.profiles.size() == 1);
  CHECK(of_cores.profiles[0].rank == 2);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].ranks.size() == 3);
  CHECK(runs[0].repeats.size() == 1);
}

}  // namespace
}  // namespace lockstep::runner
