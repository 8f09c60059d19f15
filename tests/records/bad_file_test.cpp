#include <filesystem>
#include <string>

#include "sim/core/error.h"
#include "tests/catch.h"
#include "tests/records/random_records.h"
#include "tests/records/temporary_folder.h"

using namespace lockstep;
using lockstep::testing::RandomRecords;
using lockstep::testing::slurp;
using lockstep::testing::spill;
using lockstep::testing::TemporaryFolder;

namespace {

/// The message with which `text` is refused as a calibration, without the file's folder.
std::string refusal(const std::string& text) {
  const TemporaryFolder folder;
  const std::string file = folder.file("c.json");
  spill(file, text);
  try {
    read_calibration(file);
  } catch (const InputError& error) {
    std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    REQUIRE(message.starts_with(file));
    return message.substr(file.size() - 6);
  }
  FAIL("it was accepted: " << text);
  return "";
}

std::string good_text() {
  const TemporaryFolder folder;
  Calibration calibration;
  calibration.id = "visit";
  calibration.noise.step = 0.5;
  Profile profile;
  profile.model = "tiny";
  profile.batch = 16;
  profile.layers.resize(1);
  profile.layers[0].name = "fc";
  profile.layers[0].parameters = {{"weight", {40}, 0}};
  calibration.profiles = {profile};
  calibration.collectives.resize(1);
  calibration.collectives[0].workers = 2;
  calibration.collectives[0].points = {{{1024}, {}, {}, {}, {}}, {{2048}, {}, {}, {}, {}}};
  write_calibration(calibration, folder.file("c.json"));
  return slurp(folder.file("c.json"));
}

/// good_text with one piece replaced.
std::string with(const std::string& from, const std::string& to) {
  std::string text = good_text();
  const auto at = text.find(from);
  INFO(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a good calibration is read") {
  const TemporaryFolder folder;
  spill(folder.file("c.json"), good_text());
  CHECK(read_calibration(folder.file("c.json")).profiles.at(0).batch == 16);
}

TEST_CASE("a file that is not there, a folder, an empty file") {
  CHECK_THROWS_WITH(read_calibration("/nonexistent/c.json"), StartsWith("/nonexistent/c.json: "));
  const TemporaryFolder folder;
  CHECK_THROWS_AS(read_calibration(folder.path().string()), InputError);
  CHECK_THAT(refusal(""), Contains("empty"));
  CHECK_THAT(refusal(" \n\t"), Contains("empty"));
}

TEST_CASE("text that is no JSON is refused with line and column") {
  CHECK_THAT(refusal("{\n \"format\": nan}"), StartsWith("c.json:2:1"));
  CHECK_THAT(refusal("hello"), StartsWith("c.json:1:1: not JSON"));
  CHECK_THAT(refusal("{} {}"), StartsWith("c.json:1:4: not JSON"));
  CHECK_THAT(refusal("{\"format\": 1e999}"), Contains("number overflow"));
  CHECK_THAT(refusal(std::string("{\"a\": \"\xff\"}")), Contains("UTF-8"));
  CHECK_THAT(refusal(std::string("\0\0\0\0", 4)), Contains("not JSON"));
  CHECK_THAT(refusal("version https://git-lfs.github.com/spec/v1\n"), Contains("not JSON"));
}

TEST_CASE("a truncated file is refused at every length") {
  const std::string text = good_text();
  int early = 0, all = 0;
  for (std::size_t length = 1; length + 2 < text.size(); length += 7, ++all) {
    early += refusal(text.substr(0, length)).find("ends too early") != std::string::npos ? 1 : 0;
  }
  CHECK(early > all * 9 / 10);  // inside "true" or "-1" it is only no JSON
}

TEST_CASE("keys: unknown, duplicate, missing") {
  CHECK_THAT(refusal(with("\"noise\": {", "\"noise\": {\"stepp\": 1, ")),
             StartsWith("c.json:/noise/stepp: unknown key"));
  CHECK_THAT(refusal(with("\"noise\": {", "\"noise\": {\"step\": 1, ")),
             StartsWith("c.json:/noise/step: duplicate key"));
  CHECK_THAT(refusal(with("\"batch\": 16,", "")),
             StartsWith("c.json:/profiles/0: key \"batch\" is missing"));
  CHECK_THAT(refusal(with("\"id\"", "\"a/b~c\": 1, \"id\"")),
             StartsWith("c.json:/a~1b~0c: unknown key"));
}

TEST_CASE("values of a wrong type or out of range") {
  const auto batch = [](const std::string& value) {
    return refusal(with("\"batch\": 16", "\"batch\": " + value));
  };
  for (const char* value : {"0", "-3", "2000000000", "99999999999999999999", "16.0", "1e2",
                            "\"16\"", "null", "true", "[16]", "{}", "18446744073709551615"}) {
    INFO(value);
    CHECK_THAT(batch(value), StartsWith("c.json:/profiles/0/batch: "));
  }
  CHECK_THAT(refusal(with("\"reference_ns\": 0", "\"reference_ns\": -1")),
             StartsWith("c.json:/reference_ns: -1 is out of range"));
  CHECK_THAT(refusal(with("\"reference_ns\": 0", "\"reference_ns\": 9e18")),
             StartsWith("c.json:/reference_ns: "));
  CHECK_THAT(refusal(with("\"step\":0.5", "\"step\": \"NaN\"")),
             StartsWith("c.json:/noise/step: \"NaN\" is not a number"));
  CHECK_THAT(refusal(with("\"step\":0.5", "\"step\": -0.5")),
             StartsWith("c.json:/noise/step: -0.5 is out of range"));
  CHECK_THAT(refusal(with("\"profiles\": [", "\"profiles\": 3, \"copies2\": [")),
             StartsWith("c.json:/profiles: 3 is not a list"));
  CHECK_THAT(refusal(with("\"environment\": {}", "\"environment\": {\"A\": 1}")),
             StartsWith("c.json:/environment/A: 1 is not a string"));
}

TEST_CASE("another format, another kind, another thing") {
  CHECK_THAT(refusal(with("\"format\": 1", "\"format\": 2")),
             StartsWith("c.json:/format: format 2 is not supported"));
  CHECK_THAT(refusal(with("\"kind\": \"calibration\"", "\"kind\": \"run\"")),
             StartsWith("c.json:/kind: this is \"run\", not \"calibration\""));
  CHECK_THAT(refusal("[]"), StartsWith("c.json: a list is not an object"));
  CHECK_THAT(refusal("{}"), StartsWith("c.json: key \"format\" is missing"));
}

TEST_CASE("nesting has a limit") {
  CHECK_THAT(refusal("{\"format\": " + std::string(100'000, '[')), Contains("nested deeper"));
  std::string objects;
  for (int i = 0; i < 50'000; ++i) objects += "{\"a\":";
  CHECK_THAT(refusal(objects), Contains("nested deeper"));
}

TEST_CASE("a huge file is refused before it fills the memory") {
  const TemporaryFolder folder;
  spill(folder.file("c.json"), "{}");
  std::filesystem::resize_file(folder.file("c.json"), (64u << 20) + 1);
  CHECK_THROWS_WITH(read_calibration(folder.file("c.json")), Contains("larger than 64.0 MiB"));
  CHECK_THROWS_WITH(read_calibration("/dev/zero"), Contains("is a pipe or a device"));
}

TEST_CASE("tables of layers are checked") {
  CHECK_THAT(refusal(with("\"structure\": 0", "\"structure\": 1")),
             StartsWith("c.json:/profiles/0/structure: there is no structure 1"));
  CHECK_THAT(refusal(with("\"forward_launches\"", "\"launches\"")),
             StartsWith("c.json:/profiles/0/layers/columns/2: this column must be"));
  CHECK_THAT(refusal(with("[[0,0,0,0,0,0,0]]", "[[0, 0, 0, 0, 0, 0]]")),
             StartsWith("c.json:/profiles/0/layers/rows/0: a row of 6 values"));
  CHECK_THAT(refusal(with("[[0,0,0,0,0,0,0]]", "[]")),
             StartsWith("c.json:/profiles/0/layers/rows: 0 rows for 1 layers"));
  CHECK_THAT(refusal(with("[[0,0,0,0,0,0,0]]", "[[0, 0, 0, \"0\", 0, 0, 0]]")),
             StartsWith("c.json:/profiles/0/layers/rows/0/3: "));
  CHECK_THAT(refusal(with("[\"weight\",40,0]", "[\"weight\", 40, 1]")),
             StartsWith("c.json:/profiles/0: the ready_order"));
  CHECK_THAT(refusal(with("\"bytes\":2048", "\"bytes\": 1024")),
             StartsWith("c.json:/collectives/0/points/1: bytes do not ascend"));
  const std::string point = R"({"bytes":4,"device_ns":{"p10":1,"p50":1,"p90":1},"host_ns":0})";
  const auto held = [&](const std::string& points) {
    return with("\"environment\": {}\n", "\"environment\": {}, \"held_out\": " + points + "\n");
  };
  CHECK_THAT(refusal(held("[" + point + "," + point + "]")),
             StartsWith("c.json:/collectives/0/held_out/1: bytes do not ascend"));
  CHECK_THAT(refusal(held("{}")), StartsWith("c.json:/collectives/0/held_out: "));
  CHECK_THAT(
      refusal(with("\"environment\": {}\n", "\"environment\": {}, \"call_between_ns\": -1\n")),
      StartsWith("c.json:/collectives/0/call_between_ns: "));
}

TEST_CASE("samples that a run names must be there and beside it") {
  const TemporaryFolder folder;
  const std::string file = folder.file("run.json");
  RandomRecords random(3);
  Run run = random.run();
  run.repeats.resize(1);
  run.repeats[0].samples = {Time::nanoseconds(5)};
  write_run(run, file);
  const std::string text = slurp(file);
  for (const char* reference : {"run.samples.json#1", "../run.samples.json#0", "run.samples.json#",
                                "run.samples.json#-1", "run.samples.json#99999999999999999999"}) {
    INFO(reference);
    std::string bad = text;
    const std::string good = "run.samples.json#0";
    bad.replace(bad.find(good), good.size(), reference);
    spill(file, bad);
    CHECK_THROWS_WITH(read_run(file), Contains("/repeats/0/samples: "));
  }
}

TEST_CASE("nothing is written where a number is not finite or the folder is missing") {
  const TemporaryFolder folder;
  const Run good;
  Run run;
  run.parity = Parity{std::nan(""), 3};
  run.repeats.resize(1);
  run.repeats[0].samples = {Time::nanoseconds(5)};
  CHECK_THROWS_AS(write_run(run, folder.file("run.json")), RunError);
  CHECK(std::filesystem::is_empty(folder.path()));
  CHECK_THROWS_AS(write_run(good, folder.file("missing/run.json")), InputError);
  CHECK(std::filesystem::is_empty(folder.path()));
}
