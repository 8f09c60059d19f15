// A measurement that is planned, kept to a budget, broken off and resumed, as its users do it.
#include <filesystem>

#include "runner/measure/visit_record.h"
#include "sim/records/measurement.h"
#include "sim/records/run.h"
#include "tests/catch.h"
#include "tests/runner/process.h"

namespace lockstep::runner {
namespace {

namespace fs = std::filesystem;
using testing::MeasureProcess;
using testing::TemporaryFolder;
using testing::wait_for;
using testing::wait_for_worker;

using Words = std::vector<std::string>;

/// Two repeats of one small configuration.
Words two_repeats(const TemporaryFolder& folder, const Words& more = {}) {
  Words words{"--model", "small_cnn", "--batch",   "4", "--workers", "2",
              "--steps", "2",         "--repeats", "2", "-o",        folder.file("out")};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// The record, once that many pieces are done.
VisitRecord wait_for_pieces(const TemporaryFolder& folder, std::size_t pieces) {
  const std::string file = visit_file(folder.file("out"));
  return *wait_for("pieces", [&]() -> std::optional<VisitRecord> {
    if (!fs::exists(file)) return std::nullopt;
    VisitRecord record = read_visit(file);
    if (record.done.size() < pieces) return std::nullopt;
    return record;
  });
}

void check_refused(const TemporaryFolder& folder, const Words& words, const std::string& because) {
  MeasureProcess process(folder, words);
  CHECK(process.exit_code() == 2);
  CHECK(process.one_error_line());
  CHECK_THAT(process.errors(), Contains(because));
}

}  // namespace

TEST_CASE("A dry run says what and how long, and writes nothing") {
  const TemporaryFolder folder;
  MeasureProcess process(folder, two_repeats(folder, {"--dry-run"}));
  INFO(process.errors());
  REQUIRE(process.exit_code() == 0);
  const std::string said = process.output();
  CHECK_THAT(said, Contains("2 workers") && Contains("2 repeats") && Contains("machine") &&
                       Contains("small_cnn-b4"));
  CHECK_THAT(said, Contains("Takes about") && Contains("a few quick timings"));
  CHECK_FALSE(fs::exists(folder.file("out")));
}

TEST_CASE("A budget that holds no repeat is refused, and one that cannot be read") {
  const TemporaryFolder folder;
  check_refused(folder, two_repeats(folder, {"--budget", "200ms"}), "cannot hold one repeat");
  CHECK_FALSE(fs::exists(visit_file(folder.file("out"))));
  check_refused(folder, two_repeats(folder, {"--budget", "120"}), "--budget");
  check_refused(folder, two_repeats(folder, {"--budget", "0s"}), "--budget");
  check_refused(folder, two_repeats(folder, {"--budget", "1min", "--device", "cuda"}), "--budget");
}

TEST_CASE("What kill -9 left is kept, guarded, and resumed") {
  const TemporaryFolder folder;
  const std::string out = folder.file("out");
  check_refused(folder, two_repeats(folder, {"--resume"}), "no measurement to go on with");
  Measurement kept;
  {
    MeasureProcess process(folder, two_repeats(folder));
    const VisitRecord record = wait_for_pieces(folder, 1);
    const pid_t worker = wait_for_worker(process.pid(), 1);
    process.signal(SIGKILL);
    CHECK(process.exit_code() == -1);
    wait_for("the end of a worker whose launcher is gone", [&] {
      const std::string state = testing::slurp("/proc/" + std::to_string(worker) + "/stat");
      return state.empty() || state.find(") Z ") != std::string::npos;
    });
    CHECK(record.done[0].piece == "machine");
    kept = read_measurement(out + "/parts/repeat0-machine-rank0.measurement.json");
    REQUIRE_FALSE(kept.collectives.empty());
  }
  check_refused(folder, two_repeats(folder), "--resume goes on with it");
  check_refused(folder, two_repeats(folder, {"--resume", "--seed", "2"}),
                "--seed was \"1\" and is \"2\"");

  MeasureProcess process(folder, two_repeats(folder, {"--resume"}));
  INFO(process.errors());
  REQUIRE(process.exit_code() == 0);
  const VisitRecord record = read_visit(visit_file(out));
  CHECK(record.finished);
  CHECK(record.done.size() == 4);  // two pieces, twice: none was measured again
  const Measurement whole = read_measurement(out + "/measurement.json");
  CHECK(whole.id == kept.id);
  CHECK(whole.collectives[0] == kept.collectives[0]);
  for (const Run& run : read_runs(out + "/runs.json")) {
    REQUIRE(run.repeats.size() == 2);
    CHECK(run.repeats[1].process == 1);
    CHECK((run.workers == 1 || run.parity));
  }
  CHECK_FALSE(fs::exists(out + "/parts"));
  CHECK_THAT(process.output(),
             Contains("Stable:") && Contains("Took") && Contains("Next: lockstep calibrate"));

  MeasureProcess again(folder, two_repeats(folder, {"--resume"}));
  CHECK(again.exit_code() == 0);
  CHECK_THAT(again.output(), Contains("is complete"));
  MeasureProcess unheard(folder, two_repeats(folder, {"--dry-run"}), {}, "unheard", "/dev/full");
  CHECK(unheard.exit_code() == 3);
  CHECK_THAT(unheard.errors(), Contains("standard output cannot be written"));
  MeasureProcess rests(folder, two_repeats(folder, {"--dry-run"}));
  CHECK(rests.exit_code() == 0);
  CHECK_THAT(rests.output(), Contains("as long as what was measured into"));
}

TEST_CASE("Ctrl-C keeps what was measured, but not in the place of complete results") {
  const TemporaryFolder folder;
  const std::string out = folder.file("out");
  fs::create_directories(out);
  testing::spill(out + "/measurement.json", "an older one");
  MeasureProcess process(folder, two_repeats(folder));
  wait_for_pieces(folder, 1);
  process.signal(SIGINT);
  CHECK(process.exit_code() == 3);
  CHECK(process.one_error_line());
  CHECK_THAT(process.errors(), Contains("interrupted") &&
                                   Contains("go on with: lockstep measure") &&
                                   Contains("--resume"));
  CHECK(testing::slurp(out + "/measurement.json") == "an older one");
  CHECK(fs::exists(out + "/parts"));
}

TEST_CASE("A budget is kept, and what it left out is said") {
  const TemporaryFolder folder;
  // As many steps as would take hours.
  MeasureProcess process(folder, {"--model", "small_cnn", "--batch", "4", "--workers", "2",
                                  "--steps", "1000000", "--repeats", "1", "--strategies", "ddp",
                                  "--budget", "20s", "-o", folder.file("out")});
  INFO(process.errors());
  const int code = process.exit_code();
  if (code == 2) {  // a machine that is too slow for even that says so
    CHECK_THAT(process.errors(), Contains("cannot hold one repeat"));
    return;
  }
  CHECK(code == 0);
  CHECK_THAT(process.output(), Contains("Left out, to keep to 20.0 s"));
}

}  // namespace lockstep::runner
