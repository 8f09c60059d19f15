#include <fmt/core.h>
#include <sys/stat.h>

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

TEST_CASE("what the calibration cannot answer names its place in the scenario") {
  const TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  write_measurement(small_measurement(), at + "measurement.json");
  REQUIRE(lockstep_command("calibrate " + at + "measurement.json -o " + at + "calibration.json")
              .exit_code == 0);
  spill(at + "s.yaml", kScenario);
  const std::string simulate = "simulate " + at + "s.yaml --json " + at + "out.json";
  refused(folder, simulate + " --set precision=bf16", "--set precision=bf16:1:1: precision: ");
  refused(folder, simulate + " --set graph=on", "--set graph=on:1:1: graph: ");
  refused(folder,
          simulate +
              " --set workers=[4096] --set 'platform={network: {bandwidth: 1B/s, latency: 1us}}'",
          "platform.network.bandwidth: 1 B/s is too slow");
  spill(at + "s.yaml", replaced(kScenario, "model: tiny", "model: unknown"));
  refused(folder, simulate, at + "s.yaml:3:8: model: 'unknown' was not measured");
}

TEST_CASE("files that would be read for ever, or that cannot be looked at") {
  const TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  REQUIRE(::mkfifo((at + "pipe").c_str(), 0600) == 0);
  std::filesystem::create_symlink("round", at + "round");
  for (const std::string& file : {at + "round", at + std::string(5000, 'x')}) {
    refused(folder, "simulate " + file, "cannot be read");
    refused(folder, fmt::format("calibrate {} -o {}c.json", file, at), "cannot be read");
    refused(folder, fmt::format("plot {} -o {}plots", file, at), "no such file");
  }
  refused(folder, "simulate " + at + "pipe", "is a pipe or a device");
  refused(folder, "validate " + at + "pipe " + at + "pipe", "is a pipe or a device");
  spill(at + "m.json.gz", "\x1f\x8b...");
  refused(folder, "calibrate " + at + "m.json.gz -o " + at + "c.json", "gunzip");
  const Finished escape = lockstep_command("simulate '" + at + "\x1b[31m.yaml'");
  CHECK(escape.err.find('\x1b') == std::string::npos);
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
  refused(folder, "validate " + at + "c.json " + at + "run.json " + at + "./run.json",
          "this run is given twice");
  refused(folder, "validate " + at + "c.json " + at + "c.json " + at + "run.json", "given twice");
  run.calibration = "visit";
  for (const int workers : {4097, 1'000'000'000}) {  // more than could be simulated in time
    run.workers = workers;
    write_run(run, at + "large.json");
    refused(folder, fmt::format("validate {0}c.json {0}large.json", at), "/workers");
  }
  refused(folder, "plot " + at + "none.json -o " + at + "plots", "none.json");
}
