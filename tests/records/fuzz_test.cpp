#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "sim/core/error.h"
#include "sim/records/json_quick.h"
#include "sim/records/json_text.h"
#include "tests/catch.h"
#include "tests/records/random_records.h"
#include "tests/records/temporary_folder.h"

using namespace lockstep;
using lockstep::testing::RandomRecords;
using lockstep::testing::slurp;
using lockstep::testing::spill;
using lockstep::testing::TemporaryFolder;

namespace {

/// One to three small damages: bytes replaced, removed, doubled, numbers swapped for hostile ones.
std::string damaged(std::string text, std::mt19937& engine) {
  static const std::vector<std::string> kHostile{"null",  "-1",
                                                 "1e308", "99999999999999999999",
                                                 "{}",    "[]",
                                                 "\"\"",  "true",
                                                 "NaN",   "[[[[[[",
                                                 "0.5",   "\xff",
                                                 "1e999", "-9223372036854775808",
                                                 "\"",    ",",
                                                 "}",     "]",
                                                 ":",     "\\u0000"};
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(engine);
  };
  for (std::size_t i = 1 + below(3); i > 0 && !text.empty(); --i) {
    const std::size_t at = below(text.size());
    switch (below(5)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, 1 + below(20));
        break;
      case 2:
        text.insert(at, text.substr(at, 1 + below(60)));
        break;
      case 3:
        text.insert(at, kHostile[below(kHostile.size())]);
        break;
      default: {
        const auto digit = text.find_first_of("0123456789", at);
        if (digit == std::string::npos) break;
        const auto end = std::min(text.find_first_not_of("0123456789.", digit), text.size());
        text.replace(digit, end - digit, kHostile[below(kHostile.size())]);
      }
    }
  }
  return text;
}

/// Damaged files are read, or refused with one line of InputError; nothing else may happen.
template <class Make, class Write, class Read>
void fuzz(Make make, Write write, Read read) {
  const TemporaryFolder folder;
  std::mt19937 engine(20240511);
  int refused = 0;
  for (unsigned seed = 0; seed < 25; ++seed) {
    RandomRecords random(seed);
    const std::string file = folder.file("f.json");
    write(make(random), file);
    const std::string text = slurp(file);
    for (int i = 0; i < 16; ++i) {
      const std::string bad = damaged(text, engine);
      spill(file, bad);
      try {
        read(file);
      } catch (const InputError& error) {
        ++refused;
        const std::string message = error.what();
        if (!message.starts_with(file) || message.find('\n') != std::string::npos) {
          FAIL("not one line that names the file: " << message);
        }
      }
    }
  }
  CHECK(refused > 200);  // most damage shows
}

}  // namespace

TEST_CASE("damaged measurements are read or refused") {
  fuzz([](auto& random) { return random.measurement(); }, write_measurement, read_measurement);
}
TEST_CASE("damaged calibrations are read or refused") {
  fuzz([](auto& random) { return random.calibration(); }, write_calibration, read_calibration);
}
TEST_CASE("damaged runs are read or refused") {
  fuzz([](auto& random) { return std::vector<Run>{random.run(), random.run()}; }, write_runs,
       read_runs);
}
TEST_CASE("damaged predictions are read or refused") {
  fuzz([](auto& random) { return random.prediction(); }, write_result, read_result);
}
TEST_CASE("damaged validations are read or refused") {
  fuzz([](auto& random) { return random.validation(); }, write_validation, read_validation);
}

TEST_CASE("the quick parser returns what nlohmann's does, or nothing") {
  const TemporaryFolder folder;
  std::mt19937 engine(20261128);
  int whole = 0;
  for (unsigned seed = 0; seed < 25; ++seed) {
    const std::string file = folder.file("f.json");
    write_calibration(RandomRecords(seed).calibration(), file);
    const std::string text = slurp(file);
    for (int i = 0; i < 40; ++i) {
      const std::string input = i == 0 ? text : damaged(text, engine);
      const auto quick = parse_json_quickly(input);
      if (!quick) continue;
      if (i == 0) ++whole;
      INFO(input);
      const auto exact = nlohmann::json::parse(input);
      CHECK(*quick == exact);
      CHECK(quick->dump() == exact.dump());
    }
  }
  CHECK((whole == 25 || whole == 0));  // none in a build without simdjson
}

TEST_CASE("the quick parser leaves duplicate keys and deep nesting to the exact one") {
  CHECK(!parse_json_quickly(R"({"a": 1, "a": 1})"));
  CHECK(!parse_json_quickly(R"({"a": [{"b": 1, "c": 2, "b": 3}]})"));
  CHECK(
      !parse_json_quickly(std::string(kDeepestJson + 1, '[') + std::string(kDeepestJson + 1, ']')));
  CHECK(!parse_json_quickly("1e999"));
  CHECK(!parse_json_quickly("{} {}"));
  CHECK(!parse_json_quickly("\"\xff\""));
}
