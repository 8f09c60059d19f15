#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/scenario/scenario.h"
#include "tests/catch.h"

namespace lockstep {
namespace {

const std::string kDevices =
    "devices: [{calibration: cpu.json, count: 1}, {calibration: gpu.json, count: 2}]\n";

std::string text_with(const std::string& strategy, const std::string& rest = kDevices,
                      const std::string& workers = "[3]") {
  return "name: s\ncalibration: gpu.json\nmodel: m\ntotal_batch: 128\nworkers: " + workers +
         "\nstrategy: " + strategy + "\n" + rest;
}

std::string message_of(const std::string& text) {
  try {
    parse_scenario(text, "dir/s.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("unlike devices and their shares are read", "[scenario]") {
  const Scenario scenario = parse_scenario(
      text_with("{kind: heterogeneous, split: [32, 48, 48], combine: host}"), "dir/s.yaml");
  REQUIRE(scenario.devices.size() == 2);
  CHECK(scenario.devices[0].calibration == "dir/cpu.json");
  CHECK(scenario.devices[1].count == 2);
  CHECK(devices_on_host(scenario) == 3);
  CHECK(scenario.strategy.combine_on_host);
  CHECK(scenario.platform.devices_per_host == 3);
  for (const int rank : {0, 1, 2}) CHECK(batch_of(scenario, 3, rank) == (rank == 0 ? 32 : 48));
  CHECK(batch_of(scenario, 1, 0) == 128);

  const Scenario measured =
      parse_scenario(text_with("{kind: heterogeneous, split: measured}"), "s.yaml");
  CHECK(measured.split_measured);
  CHECK_FALSE(measured.strategy.combine_on_host);
  // Two hosts with the same shares.
  const Scenario hosts =
      parse_scenario(text_with("{kind: heterogeneous, split: [16, 24, 24]}",
                               kDevices + "platform: {network: {bandwidth: 1GB/s}}\n", "[6]"),
                     "s.yaml");
  CHECK(batch_of(hosts, 6, 3) == 16);
  CHECK(batch_of(hosts, 6, 5) == 24);
  // Of one kind, without devices.
  const Scenario alike =
      parse_scenario(text_with("{kind: heterogeneous, split: [100, 28]}", "", "[1, 2]"), "s.yaml");
  CHECK(batch_of(alike, 2, 1) == 28);
}

TEST_CASE("a split that cannot be is one line with its place", "[scenario]") {
  CHECK(message_of(text_with("{kind: heterogeneous, split: [32, 48, 40]}")) ==
        "dir/s.yaml:6:40: strategy.split: 32 + 48 + 40 add up to 120, a host has 128 samples; "
        "shares that add up to it, or split: measured");
  CHECK_THAT(message_of(text_with("{kind: heterogeneous, split: [0, 64, 64]}")),
             Contains("strategy.split: '0' is not a whole number from 1"));
  CHECK_THAT(message_of(text_with("{kind: heterogeneous, split: [64, 64]}")),
             Contains("2 shares for the 3 workers of a host"));
  CHECK_THAT(message_of(text_with("{kind: heterogeneous, split: []}")), Contains("an empty list"));
  CHECK_THAT(message_of(text_with("{kind: heterogeneous, split: fair}")),
             Contains("'fair' is not one of even, measured"));
  CHECK_THAT(message_of(text_with("{kind: heterogeneous, combine: cloud}")),
             Contains("'cloud' is not one of device, host"));
  CHECK_THAT(message_of(text_with("{kind: ddp, split: measured}")), Contains("split: unknown key"));
  CHECK_THAT(message_of(text_with("{kind: ddp}")), Contains("devices: unknown key"));
  CHECK_THAT(message_of(text_with("{kind: heterogeneous, combine: host}", "")),
             Contains("workers of one kind reduce among themselves"));
  CHECK_THAT(message_of(text_with("{kind: heterogeneous}", kDevices, "[4]")),
             Contains("4 workers are no whole hosts of 3 devices"));
  CHECK_THAT(message_of(text_with("{kind: heterogeneous}", kDevices, "[6]")),
             Contains("6 workers are on 2 hosts, and nothing joins them"));
  CHECK_THAT(message_of(text_with("{kind: heterogeneous}",
                                  kDevices + "platform: {network: {bandwidth: 1GB/s}}\n", "[9]")),
             Contains("128 samples are not the same for each of 3 hosts"));
  CHECK_THAT(message_of(text_with("{kind: heterogeneous}", "", "[129]")),
             Contains("129 workers share a total_batch of 128"));
  CHECK_THAT(message_of(text_with("{kind: heterogeneous}", kDevices + "graph: true\n")),
             Contains("is no one graph"));
  CHECK_THAT(message_of(text_with("{kind: heterogeneous}", "devices: []\n")),
             Contains("devices: an empty list"));
  CHECK_THAT(message_of(text_with("{kind: heterogeneous}", "devices: [{count: 1}]\n")),
             Contains("devices.calibration: missing"));
  CHECK_THAT(
      message_of(text_with("{kind: heterogeneous}", "devices: [{calibration: a, count: 0}]\n")),
      Contains("devices.count: '0' is not a whole number from 1"));
  std::string weak = text_with("{kind: heterogeneous}");
  weak.replace(weak.find("total_batch: 128"), 16, "batch_per_worker: 32");
  CHECK_THAT(message_of(weak), Contains("unlike workers share a batch out"));
}

}  // namespace
}  // namespace lockstep
