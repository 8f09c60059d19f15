// Mutated scenarios: whatever comes, it is accepted or refused in one line; never a crash or a
// hang.
#include <random>
#include <string>

#include "sim/core/error.h"
#include "sim/scenario/scenario.h"
#include "tests/catch.h"

namespace lockstep {
namespace {

constexpr std::string_view kSeed = R"(name: "a scenario"
calibration: &file ../calibration/data/machine.json
model: resnet50
total_batch: 130
workers: [1, 2, 4]
strategy: {kind: ddp, bucket_cap: 25MiB, first_bucket_cap: 1MiB, broadcast_buffers: true}
platform:
  hosts: {devices: 4}
  network: {bandwidth: 25GB/s, latency: 5us, mtu: 1500B, slow_links: [{host: 0, bandwidth: 1GB/s}]}
  collective: gloo_ring
stragglers:
  - {worker: 3, slowdown: 1.25, delay: 5ms, part: forward}
  - worker: 1
    slowdown: {kind: log_normal, sigma: 0.2, median: 2, least: 1}
  - {worker: all, delay: {kind: periodic, duration: 5ms, every: 3, aligned: false}}
iterations: 20
seed: 7
sync: none
precision: bf16
compute: replay
input: {workers: 2, load: 30ms, copy: 1ms}
dataset: {samples: 50000, drop_last: true}
)";

constexpr std::string_view kPieces[] = {"&a ",      "*a",        "*file",
                                        "!!int ",   "!!binary ", "<<: ",
                                        "[",        "]",         "{",
                                        "}",        ": ",        "- ",
                                        "? ",       "|\n",       ">\n",
                                        "\n---\n",  "\n...\n",   "%YAML 1.2\n",
                                        "\t",       "\"",        "'",
                                        "\\x",      "# ",        "1e309",
                                        ".nan",     "-1",        "999999999999999999999",
                                        "25MiB",    "\xff\xfe",  "\xef\xbb\xbf",
                                        "\xf0\x9f", "~",         ",",
                                        "@",        "`"};

std::size_t below(std::mt19937& random, std::size_t limit) {
  return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
}

std::string mutated(std::mt19937& random) {
  std::string text(kSeed);
  const std::size_t edits = 1 + below(random, 6);
  for (std::size_t i = 0; i < edits && !text.empty(); ++i) {
    const std::size_t at = below(random, text.size());
    const std::size_t length = 1 + below(random, 12);
    switch (below(random, 6)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kPieces[below(random, std::size(kPieces))]);
        break;
      case 2:
        text[at] = static_cast<char>(below(random, 256));
        break;
      case 3:
        text.insert(at, text.substr(below(random, text.size()), length));
        break;
      case 4:
        text.resize(at);
        break;
      default:
        text.replace(at, length, kPieces[below(random, std::size(kPieces))]);
        break;
    }
  }
  return text;
}

TEST_CASE("mutated scenarios are accepted or refused in one line", "[scenario][fuzz]") {
  std::mt19937 random(3);
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::string text = mutated(random);
    try {
      const Scenario scenario = parse_scenario(text, "s.yaml");
      REQUIRE_FALSE(scenario.workers.empty());
      REQUIRE(batch_of(scenario, scenario.workers.front(), 0) > 0);
    } catch (const InputError& error) {
      const std::string message = error.what();
      REQUIRE(message.starts_with("s.yaml"));
      REQUIRE(message.find('\n') == std::string::npos);
      ++refused;
    }
  }
  CHECK(refused > 1000);
  CHECK(refused < 4000);
}

}  // namespace
}  // namespace lockstep
