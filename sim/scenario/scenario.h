#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/time.h"
#include "sim/core/units.h"
#include "sim/records/run.h"

namespace lockstep {

/// One worker that is slower than its profile says, in every task.
struct Straggler {
  int worker = 0;
  Factor slowdown;
};

/// One link from every host to a switch that never blocks.
struct NetworkOptions {
  Bandwidth bandwidth;
  Time latency;
};

enum class CollectiveModel : std::uint8_t {
  table,  ///< measured times; where n was not measured, the nearest measured n scaled to it
  ring,   ///< step by step over the network
};

struct PlatformOptions {
  int devices_per_host = 0;  ///< 0: one with a network, else all workers share a host
  std::optional<NetworkOptions> network;
  /// Unless given, a ring where workers are on several hosts of a network, else the table.
  std::optional<CollectiveModel> collective;
};

/// A question to the simulator: what design.md calls a scenario, checked.
struct Scenario {
  std::string name;
  std::string calibration;  ///< path of the file, resolved
  std::string model;
  std::optional<int> batch_per_worker;  ///< weak scaling; exactly one of the two is set
  std::optional<int> total_batch;       ///< strong scaling
  std::vector<int> workers;
  StrategyOptions strategy;
  PlatformOptions platform;
  std::vector<Straggler> stragglers;
  int iterations = 50;
  std::uint64_t seed = 1;
  Sync sync = Sync::step;
  bool graph = false;
  std::string precision = "fp32";
  bool noise = true;
  bool input = false;  ///< load and copy batches as the profile measured it
  /// Where each dotted key stands, and under "" the file: for what turns out wrong later.
  std::map<std::string, Location> places;
};

/// The place of a key, or of the nearest map around it, or the file.
Location place_of(const Scenario& scenario, std::string key);

/// Reads a scenario and puts `overrides` ("strategy.bucket_cap=4MiB") over it. Relative paths are
/// relative to the file, in overrides to the working directory. Throws InputError for everything
/// that is not exactly right.
Scenario read_scenario(const std::string& file, std::span<const std::string> overrides = {});
Scenario parse_scenario(const std::string& text, const std::string& file,
                        std::span<const std::string> overrides = {});

/// Reads a file that holds a scenario's `platform` alone: where runs were measured, for example.
PlatformOptions read_platform(const std::string& file);

/// Samples of worker `rank` of `workers`; shares of an uneven batch differ by at most one, the
/// larger ones first.
int batch_of(const Scenario& scenario, int workers, int rank);

}  // namespace lockstep
