#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>

#include "sim/core/files.h"
#include "tests/catch.h"
#include "tests/cli/process.h"
#include "tests/cli/records.h"

using namespace lockstep;
using namespace lockstep::testing;

TEST_CASE("a search does not replace the calibration that its scenario names") {
  const TemporaryFolder folder;
  const std::string root = LOCKSTEP_SOURCE_DIR;
  std::filesystem::copy_file(root + "/tests/data/cpu.json", folder.file("cpu.json"));
  const std::string before = read_file(folder.file("cpu.json"));
  write_file(folder.file("s.yaml"),
             "name: s\ncalibration: cpu.json\nmodel: vgg11\ntotal_batch: 8\nworkers: [1, 2]\n"
             "strategy: {kind: ddp}\n");
  const Finished refused =
      lockstep_command("threads " + folder.file("s.yaml") + " --json " + folder.file("cpu.json"));
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, Contains("is read by this command, too"));
  CHECK(read_file(folder.file("cpu.json")) == before);
}

TEST_CASE("version and help") {
  const Finished version = lockstep_command("--version");
  CHECK(version.exit_code == 0);
  CHECK_THAT(version.out, StartsWith("lockstep "));
  for (const char* command : {"", "simulate", "calibrate", "validate", "published", "threads",
                              "compare", "plot", "collective"}) {
    INFO(command);
    const Finished help = lockstep_command(std::string(command) + " --help");
    CHECK(help.exit_code == 0);
    CHECK_THAT(help.out, Contains("lockstep "));
    if (*command != '\0') CHECK_THAT(help.out, Contains("Example:"));
    CHECK(help.err.empty());
  }
}

TEST_CASE("bad flags exit with 2 and one line") {
  for (const char* arguments : {"",
                                "frobnicate",
                                "--frobnicate",
                                "simulate",
                                "simulate a.yaml --frobnicate",
                                "simulate a.yaml --threads x",
                                "simulate a.yaml --threads -1",
                                "simulate a.yaml --set",
                                "calibrate a.json",
                                "calibrate -o b.json",
                                "plot a.json",
                                "compare",
                                "compare a.json",
                                "validate",
                                "validate a.json b.json --mean 2",
                                "validate a.json b.json --worst -2%",
                                "validate a.json b.json --unstable nan%",
                                "published",
                                "published a.yaml --median 2",
                                "threads",
                                "threads a.yaml --batches 0"}) {
    INFO(arguments);
    const Finished finished = lockstep_command(arguments);
    CHECK(finished.exit_code == 2);
    CHECK(finished.out.empty());
    CHECK(finished.one_error_line());
  }
}

TEST_CASE("a word that is no command is named") {
  CHECK_THAT(lockstep_command("simulat a.yaml").err,
             Contains("'simulat' is no command; did you mean 'simulate'?"));
  CHECK_THAT(lockstep_command("xyzzy").err, Contains("'xyzzy' is no command"));
}

TEST_CASE("measure, calibrate, validate, simulate: one after the other") {
  const TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  write_measurement(small_measurement(), at + "measurement.json");
  write_runs({small_run(Time::microseconds(400))}, at + "runs.json");
  spill(at + "scenario.yaml", kScenario);

  const Finished calibrated =
      lockstep_command("calibrate " + at + "measurement.json -o " + at + "calibration.json");
  REQUIRE(calibrated.exit_code == 0);
  CHECK(calibrated.err.empty());
  CHECK_THAT(calibrated.out, Contains("tiny"));
  CHECK_THAT(calibrated.out, Contains("Next: lockstep validate"));

  // 350 us predicted, 400 measured: 12.5 % too short.
  const std::string validate = "validate " + at + "calibration.json " + at + "runs.json ";
  const Finished table = lockstep_command(validate + "--json " + at + "validation.json");
  CHECK(table.exit_code == 0);
  CHECK_THAT(table.out, Contains("-12.5 %"));
  CHECK_THAT(slurp(at + "validation.json"), Contains("\"validation\""));
  CHECK(lockstep_command(validate + "--mean 13% --worst 13%").exit_code == 0);
  const Finished missed = lockstep_command(validate + "--mean 12%");
  CHECK(missed.exit_code == 1);
  CHECK_THAT(missed.out, Contains("does not hold: cpu: mean error 12.50 % is above 12 %"));

  const Finished simulated =
      lockstep_command("simulate " + at + "scenario.yaml --json " + at + "result.json --csv " + at +
                       "result.csv --trace " + at + "trace.json");
  CHECK(simulated.exit_code == 0);
  CHECK(simulated.err.empty());
  CHECK_THAT(simulated.out, Contains("Next: lockstep plot"));
  for (const char* file : {"result.json", "result.csv", "trace.json"}) {
    CHECK(std::filesystem::file_size(at + file) > 100);
  }
}

TEST_CASE("two results side by side") {
  const TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  write_measurement(small_measurement(), at + "measurement.json");
  spill(at + "scenario.yaml", kScenario);
  lockstep_command("calibrate " + at + "measurement.json -o " + at + "calibration.json");
  const std::string simulate = "simulate " + at + "scenario.yaml --json " + at;
  REQUIRE(lockstep_command(simulate + "a.json").exit_code == 0);
  REQUIRE(lockstep_command(simulate + "b.json --set workers=[2] --set strategy.kind=all_reduce")
              .exit_code == 0);
  const Finished compared = lockstep_command("compare " + at + "a.json " + at + "b.json");
  CHECK(compared.exit_code == 0);
  CHECK_THAT(compared.out, Contains("all_reduce"));
  // One parameter: both take 300 us of compute and 50 us of the exchange.
  CHECK_THAT(compared.out, Contains("1.000"));
  CHECK_THAT(compared.out, Contains("nothing"));

  REQUIRE(lockstep_command(simulate + "c.json --set workers=[3]").exit_code == 0);
  for (const char* second : {"c.json", "none.json", "calibration.json"}) {
    const Finished refused = lockstep_command(fmt::format("compare {0}b.json {0}{1}", at, second));
    CHECK(refused.exit_code == 2);
    CHECK(refused.one_error_line());
    CHECK(refused.out.empty());
  }
}

TEST_CASE("the same bytes for any number of threads") {
  const TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  write_measurement(small_measurement(), at + "measurement.json");
  spill(at + "scenario.yaml", kScenario);
  lockstep_command("calibrate " + at + "measurement.json -o " + at + "calibration.json");
  for (const char* threads : {"1", "8"}) {
    const std::string out = fmt::format("{}{}.json", at, threads);
    lockstep_command(
        fmt::format("simulate {}scenario.yaml --threads {} --json {}", at, threads, out));
  }
  REQUIRE(!slurp(at + "1.json").empty());
  CHECK(slurp(at + "1.json") == slurp(at + "8.json"));
}

TEST_CASE("output that cannot be written is said in one line") {
  const TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  write_measurement(small_measurement(), at + "measurement.json");
  spill(at + "scenario.yaml", kScenario);
  const std::string calibrate = "calibrate " + at + "measurement.json -o ";
  CHECK(lockstep_command(calibrate + at + "calibration.json").exit_code == 0);
  for (const std::string& file : {at + "missing/c.json", folder.path().string()}) {
    const Finished finished = lockstep_command(calibrate + file);
    CHECK(finished.exit_code == 2);
    CHECK(finished.one_error_line());
    CHECK(finished.out.empty());
  }
  // One bad place: the good ones stay empty, too.
  const Finished finished = lockstep_command("simulate " + at + "scenario.yaml --json " + at +
                                             "good.json --csv " + at + "missing/bad.csv");
  CHECK(finished.exit_code == 2);
  CHECK_FALSE(std::filesystem::exists(at + "good.json"));
}

TEST_CASE("no output replaces an input or another output, under whatever name") {
  const TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  write_measurement(small_measurement(), at + "m.json");
  write_runs({small_run(Time::microseconds(400))}, at + "runs.json");
  spill(at + "s.yaml", kScenario);
  const std::string c = at + "calibration.json";
  REQUIRE(lockstep_command("calibrate " + at + "m.json -o " + c).exit_code == 0);
  std::filesystem::create_symlink("s.yaml", at + "link");
  std::filesystem::create_hard_link(c, at + "hard");
  const auto contents = [&] {
    std::string all;
    for (const char* file : {"m.json", "runs.json", "runs.samples.json", "s.yaml"}) {
      all += slurp(at + file);
    }
    return all + slurp(c);
  };
  const std::string before = contents();
  for (const char* command :
       {"simulate {0}s.yaml --json {0}s.yaml", "simulate {0}s.yaml --csv {0}./link",
        "simulate {0}s.yaml --trace {0}calibration.json", "simulate {0}s.yaml --json {0}hard",
        "simulate {0}s.yaml --set calibration={0}hard --json {0}calibration.json",
        "simulate {0}s.yaml --json {0}x --csv {0}./x", "calibrate {0}m.json -o {0}m.json",
        "validate {0}calibration.json {0}runs.json --json {0}runs.json",
        "validate {0}calibration.json {0}runs.json --json {0}runs.samples.json",
        "validate {0}calibration.json {0}runs.json --json {0}calibration.json"}) {
    const std::string arguments = fmt::format(fmt::runtime(command), at);
    INFO(arguments);
    const Finished finished = lockstep_command(arguments);
    CHECK(finished.exit_code == 2);
    CHECK(finished.one_error_line());
    CHECK(contents() == before);
  }
  CHECK_FALSE(std::filesystem::exists(at + "x"));
}

TEST_CASE("an output that is no regular file is written to, not replaced") {
  const TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  write_measurement(small_measurement(), at + "m.json");
  const std::string calibrate = "calibrate " + at + "m.json -o ";
  // The shell's own redirection, and what follows on standard output.
  const Finished through = lockstep_command(calibrate + "/dev/stdout");
  CHECK(through.exit_code == 0);
  CHECK_THAT(through.out, StartsWith("{") && Contains("\"calibration\"") && Contains("Next: "));
  // The kernel's /dev/full under another name, where root may make one.
  if (::mknod((at + "full").c_str(), S_IFCHR | 0600, ::makedev(1, 7)) == 0) {
    const Finished full = lockstep_command(calibrate + at + "full");
    CHECK(full.exit_code == 3);
    CHECK(full.one_error_line());
    CHECK(std::filesystem::is_character_file(at + "full"));
  }
}

TEST_CASE("a limit on files ends with 3, one line and nothing left behind") {
  const TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  write_measurement(small_measurement(), at + "m.json");
  const Finished limited =
      lockstep_command("calibrate " + at + "m.json -o " + at + "c.json", "ulimit -f 1; ");
  CHECK(limited.exit_code == 3);
  CHECK(limited.one_error_line());
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("standard output that is closed or full ends with 3 and one line") {
  const TemporaryFolder folder;
  for (const char* where : {"/dev/full", "&-"}) {
    const std::string err = folder.file("err");
    const std::string command =
        "'" LOCKSTEP_BINARY "' --version >" + std::string(where) + " 2>'" + err + "'";
    const int status = std::system(command.c_str());
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 3);
    CHECK_THAT(slurp(err), StartsWith("lockstep: standard output cannot be written"));
  }
}

TEST_CASE("published cases: a table, a record, and 1 where something does not hold") {
  const TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  const std::string good =
      "case: two\nsource: made up\nshape:\n  - {says: apart, check: mean_of_maxima, steps: [[1s, "
      "2s], [2s, 1s]]}\n";
  spill(at + "good.yaml", good);
  const Finished held = lockstep_command("published " + at + "good.yaml --json " + at + "p.json");
  CHECK(held.exit_code == 0);
  CHECK_THAT(held.out, Contains("apart: holds") && Contains("1 of 1 hold"));
  CHECK_THAT(slurp(at + "p.json"),
             Contains("\"role\": \"shape\"") || Contains("\"role\":\"shape\""));
  spill(at + "bad.yaml", good + "  - {says: same, check: mean_of_maxima, steps: [[1s, 2s]]}\n");
  CHECK(lockstep_command("published " + at + "bad.yaml").exit_code == 1);
  CHECK(lockstep_command("published " + at + "good.yaml --median 10%").exit_code == 1);
  spill(at + "wrong.yaml", good + "shapes: 1\n");
  const Finished wrong = lockstep_command("published " + at + "wrong.yaml");
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.one_error_line());
  CHECK_THAT(wrong.err, Contains("wrong.yaml:5:1: shapes: unknown key"));
}

TEST_CASE("threads: processes x threads of a calibrated host, with its runs beside them") {
  const TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  write_measurement(small_measurement(), at + "measurement.json");
  write_runs({small_run(Time::microseconds(400))}, at + "runs.json");
  spill(at + "scenario.yaml", kScenario);
  REQUIRE(lockstep_command("calibrate " + at + "measurement.json -o " + at + "calibration.json")
              .exit_code == 0);
  // 300 us of compute; two processes of 16 add 50 us of an all-reduce: 32 samples in 350 us.
  const Finished found = lockstep_command("threads " + at + "scenario.yaml --batches 32 --json " +
                                          at + "threads.json --runs " + at + "runs.json");
  CHECK(found.exit_code == 0);
  CHECK_THAT(found.out, Contains("as predicted: 2 x 1 (processes x threads) at batch 32"));
  CHECK_THAT(found.out, Contains("350 us") && Contains("400 us") && Contains("-12.5 %"));
  CHECK_THAT(slurp(at + "threads.json"), Contains("\"kind\": \"threads\""));
  const Finished refused = lockstep_command("threads " + at + "scenario.yaml");
  CHECK(refused.exit_code == 2);
  CHECK(refused.one_error_line());
  CHECK_THAT(refused.err, Contains("scenario.yaml:4:") && Contains("give total_batch"));
}
