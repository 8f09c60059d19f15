// A measurement that is planned, kept to a budget, broken off and resumed, as its users do it.
#include <filesystem>

#include "runner/measure/visit_record.h"
#include "sim/records/run.h"
#include "tests/catch.h"
#include "tests/runner/made_up.h"
#include "tests/runner/process.h"

namespace lockstep::runner {
namespace {

namespace fs = std::filesystem;
using testing::MeasureProcess;
using testing::TemporaryFolder;
using testing::wait_for;
using testing::wait_for_worker;

using Words = std::vector<std::string>;

/// Two repeats of two pieces.
Words two_repeats(const TemporaryFolder& folder, const Words& more = {}) {
  Words words = testing::replay(folder, {"--workers", "2", "--steps", "5", "--repeats", "2"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void wait_for_first_piece(const TemporaryFolder& folder) {
  const std::string file = visit_file(folder.file("out"));
  wait_for("a piece", [&] { return fs::exists(file) && !read_visit(file).done.empty(); });
}

void check_refused(const TemporaryFolder& folder, const Words& words, const std::string& because) {
  MeasureProcess process(folder, words);
  CHECK(process.exit_code() == 2);
  CHECK(process.one_error_line());
  CHECK_THAT(process.errors(), Contains(because));
}

std::string run_well(const TemporaryFolder& folder, const Words& words) {
  MeasureProcess process(folder, words);
  INFO(process.errors());
  CHECK(process.exit_code() == 0);
  return process.output();
}

}  // namespace

TEST_CASE("A dry run says what and how long, and writes nothing") {
  const TemporaryFolder folder;
  const std::string said = run_well(folder, two_repeats(folder, {"--dry-run"}));
  CHECK_THAT(said, Contains("2 workers") && Contains("2 repeats") && Contains("one_layer-b4") &&
                       Contains("one_layer-b8"));
  CHECK_THAT(said, Contains("Takes about") && Contains("a few quick timings"));
  CHECK_FALSE(fs::exists(folder.file("out")));
}

TEST_CASE("A budget that holds no repeat is refused, and one that cannot be read") {
  const TemporaryFolder folder;
  check_refused(folder, two_repeats(folder, {"--budget", "20ms"}), "cannot hold one repeat");
  CHECK_FALSE(fs::exists(visit_file(folder.file("out"))));
  check_refused(folder, two_repeats(folder, {"--budget", "120"}), "--budget");
  check_refused(folder, two_repeats(folder, {"--budget", "0s"}), "--budget");
  check_refused(folder, two_repeats(folder, {"--budget", ""}), "--budget");
  check_refused(folder, {"--budget", "1min", "--device", "cuda"}, "--budget");
}

TEST_CASE("What kill -9 left is kept, guarded, and resumed") {
  const TemporaryFolder folder;
  const std::string out = folder.file("out");
  check_refused(folder, two_repeats(folder, {"--resume"}), "no measurement to go on with");
  {
    MeasureProcess process(folder, two_repeats(folder));
    wait_for_first_piece(folder);
    const pid_t worker = wait_for_worker(process.pid(), 1);
    process.signal(SIGKILL);
    CHECK(process.exit_code() == -1);
    wait_for("the end of a worker whose launcher is gone", [&] {
      const std::string state = testing::slurp("/proc/" + std::to_string(worker) + "/stat");
      return state.empty() || state.find(") Z ") != std::string::npos;
    });
  }
  const std::vector<PieceDone> before = read_visit(visit_file(out)).done;
  REQUIRE(before.size() == 1);
  CHECK(before[0].piece == "one_layer-b4");
  const std::vector<Run> kept = read_runs(out + "/parts/repeat0-one_layer-b4-rank0.runs.json");
  REQUIRE(kept.size() == 1);
  check_refused(folder, two_repeats(folder), "--resume goes on with it");
  check_refused(folder, two_repeats(folder, {"--resume", "--seed", "2"}),
                "--seed was \"1\" and is \"2\"");

  const std::string said = run_well(folder, two_repeats(folder, {"--resume"}));
  CHECK_THAT(said, Contains("Stable:") && Contains("Took") && Contains("Next: lockstep validate"));
  const VisitRecord record = read_visit(visit_file(out));
  CHECK(record.finished);
  REQUIRE(record.done.size() == 4);  // two pieces, twice: none was measured again
  CHECK(record.done[0] == before[0]);
  const std::vector<Run> runs = read_runs(out + "/runs.json");
  REQUIRE(runs.size() == 2);
  for (const Run& run : runs) {
    REQUIRE(run.repeats.size() == 2);
    CHECK(run.repeats[0].process == 0);
    CHECK(run.repeats[1].process == 1);
    CHECK(run.repeats[1].steps >= 5);
    CHECK(run.ranks.size() == 2);
    CHECK(fs::exists(out + "/" + run.id + ".trace.json"));
  }
  CHECK(runs[0].repeats[0] == kept[0].repeats[0]);
  CHECK_FALSE(fs::exists(out + "/parts"));

  CHECK_THAT(run_well(folder, two_repeats(folder, {"--resume"})), Contains("is complete"));
  CHECK_THAT(run_well(folder, two_repeats(folder, {"--dry-run"})),
             Contains("as long as what was measured into"));
  MeasureProcess unheard(folder, two_repeats(folder, {"--dry-run"}), {}, "unheard", "/dev/full");
  CHECK(unheard.exit_code() == 3);
  CHECK_THAT(unheard.errors(), Contains("standard output cannot be written"));
}

TEST_CASE("Ctrl-C keeps what was measured, but not in the place of complete results") {
  const TemporaryFolder folder;
  const std::string out = folder.file("out");
  fs::create_directories(out);
  testing::spill(out + "/runs.json", "older ones");
  MeasureProcess process(folder, two_repeats(folder));
  wait_for_first_piece(folder);
  process.signal(SIGINT);
  CHECK(process.exit_code() == 3);
  CHECK(process.one_error_line());
  CHECK_THAT(process.errors(), Contains("interrupted") &&
                                   Contains("go on with: lockstep measure") &&
                                   Contains("--resume"));
  CHECK(testing::slurp(out + "/runs.json") == "older ones");
  CHECK(fs::exists(out + "/parts"));
}

TEST_CASE("A budget is kept, and what it left out is said") {
  const TemporaryFolder folder;
  // As many steps as would take a day.
  MeasureProcess process(
      folder, testing::replay(folder, {"--steps", "1000000", "--repeats", "1", "--budget", "4s"}));
  const int code = process.exit_code();
  INFO(process.errors());
  if (code == 2) {  // a machine that is too slow for even that says so
    CHECK_THAT(process.errors(), Contains("cannot hold one repeat"));
    return;
  }
  CHECK(code == 0);
  CHECK_THAT(process.output(), Contains("Left out, to keep to 4.0 s"));
}

}  // namespace lockstep::runner
