#include <filesystem>
#include <map>

#include "tests/catch.h"
#include "tests/cli/process.h"
#include "tests/cli/records.h"

using namespace lockstep;
using namespace lockstep::testing;

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  INFO(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// The command refuses, in one line that holds `says`, and leaves the folder as it was.
void refused(const TemporaryFolder& folder, const std::string& arguments, const std::string& says) {
  const auto count = [&] {
    return std::distance(std::filesystem::directory_iterator(folder.path()),
                         std::filesystem::directory_iterator());
  };
  const auto before = count();
  const Finished finished = lockstep_command(arguments);
  INFO(arguments << "\n" << finished.err);
  CHECK(finished.exit_code == 2);
  CHECK(finished.one_error_line());
  CHECK(finished.out.empty());
  CHECK_THAT(finished.err, Contains(says));
  CHECK(count() == before);
}

}  // namespace

TEST_CASE("bad scenario files") {
  const TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  write_measurement(small_measurement(), at + "measurement.json");
  REQUIRE(lockstep_command("calibrate " + at + "measurement.json -o " + at + "calibration.json")
              .exit_code == 0);
  spill(at + "s.yaml", kScenario);
  REQUIRE(lockstep_command("simulate " + at + "s.yaml").exit_code == 0);

  const std::string simulate = "simulate " + at + "s.yaml --json " + at + "out.json";
  refused(folder, "simulate " + at + "none.yaml", "none.yaml");
  refused(folder, "simulate " + folder.path().string(), "folder");
  const std::map<std::string, std::string> bad{
      {"", "s.yaml"},
      {kScenario.substr(0, 40), "s.yaml"},
      {replaced(kScenario, "seed:", "sead:"), "sead"},
      {kScenario + "seed: 2\n", "seed"},
      {replaced(kScenario, "{kind: ddp}", "{kind: ddp, bucket_cap: 25}"), "bucket_cap"},
      {replaced(kScenario, "iterations: 5", "iterations: .nan"), "iterations"},
      {replaced(kScenario, "iterations: 5", "iterations: 99999999999999999999"), "iterations"},
      {replaced(kScenario, "[1, 2]", "&a [1, *a]"), "s.yaml"},
      {replaced(kScenario, "workers: [1, 2]", "workers: []"), "workers"},
      {replaced(kScenario, "model: tiny", "model: unknown"), "unknown"},
      {replaced(kScenario, "calibration.json", "none.json"), "none.json"},
      {std::string(100'000, '['), "s.yaml"},
      {"\xff\xfe\x00", "s.yaml"},
  };
  for (const auto& [text, says] : bad) {
    spill(at + "s.yaml", text);
    refused(folder, simulate, says);
  }
  spill(at + "s.yaml", kScenario);
  refused(folder, simulate + " --set seed", "--set");
  refused(folder, simulate + " --set sead=1", "sead");
}

TEST_CASE("bad record files") {
  const TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  write_measurement(small_measurement(), at + "m.json");
  const std::string good = slurp(at + "m.json");
  const std::string calibrate = "calibrate " + at + "m.json -o " + at + "out.json";
  refused(folder, "calibrate " + at + "none.json -o " + at + "out.json", "none.json");
  refused(folder, "calibrate " + folder.path().string() + " -o " + at + "out.json", "folder");
  const std::map<std::string, std::string> bad{
      {"", "empty"},
      {good.substr(0, good.size() / 2), "m.json:"},
      {replaced(good, "\"format\": 1", "\"format\": 2"), "format 2 is not supported"},
      {replaced(good, "\"kind\": \"measurement\"", "\"kind\": \"run\""), "this is \"run\""},
      {replaced(good, "\"date\"", "\"dote\""), "m.json:"},
      {replaced(good, "\"date\"", "\"id\""), "/id: duplicate key"},
      {replaced(good, "\"batch\": 16", "\"batch\": NaN"), "m.json:"},
      {replaced(good, "\"batch\": 16", "\"batch\": 1e9"), "/profiles/0/profile/batch"},
      {replaced(good, "\"reference_ns\": 100000", "\"reference_ns\": -1"), "/reference_ns"},
      {std::string(100'000, '['), "nested"},
  };
  for (const auto& [text, says] : bad) {
    spill(at + "m.json", text);
    refused(folder, calibrate, says);
  }
}

TEST_CASE("validate wants a calibration and runs of its visit") {
  const TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  write_measurement(small_measurement(), at + "m.json");
  REQUIRE(lockstep_command("calibrate " + at + "m.json -o " + at + "c.json").exit_code == 0);
  Run run = small_run(Time::microseconds(350));
  write_run(run, at + "run.json");
  run.calibration = "another";
  write_run(run, at + "other.json");
  refused(folder, "validate " + at + "c.json", "no runs given");
  refused(folder, "validate " + at + "run.json", "no calibration");
  refused(folder, "validate " + at + "c.json " + at + "other.json", "belongs to calibration");
  refused(folder, "validate " + at + "c.json " + at + "m.json", "/kind");
  refused(folder, "validate " + at + "c.json " + at + "run.samples.json", "/kind");
  refused(folder, "validate " + at + "c.json " + at + "none.json", "none.json");
  refused(folder, "plot " + at + "none.json -o " + at + "plots", "none.json");
}
