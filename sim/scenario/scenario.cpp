#include "sim/scenario/scenario.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "sim/records/calibration.h"
#include "sim/scenario/devices.h"
#include "sim/scenario/fields.h"
#include "sim/scenario/parts.h"
#include "sim/workload/fusion.h"
#include "sim/workload/strategy.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMostBatch = 1'000'000;
constexpr std::int64_t kMostIterations = 10'000;

void read_batch(Fields& fields, Scenario& scenario) {
  const ConfigNode* per_worker = fields.find("batch_per_worker");
  const ConfigNode* total = fields.find("total_batch");
  if (per_worker != nullptr && total != nullptr) {
    throw InputError(total->at, "total_batch", "batch_per_worker is given too",
                     "weak scaling fixes one, strong scaling the other");
  }
  if (total != nullptr) {
    scenario.total_batch = static_cast<int>(to_integer(*total, "total_batch", 1, kMostBatch));
    return;
  }
  scenario.batch_per_worker = static_cast<int>(
      to_integer(fields.require("batch_per_worker", "32, or total_batch for strong scaling"),
                 "batch_per_worker", 1, kMostBatch));
}

void read_workers(Fields& fields, Scenario& scenario) {
  const ConfigNode& list = fields.require("workers", "[1, 2, 4]");
  for (const ConfigNode& item : to_list(list, "workers", kMostPoints)) {
    const int n = static_cast<int>(to_integer(item, "workers", 1, kMostWorkers));
    if (std::ranges::find(scenario.workers, n) != scenario.workers.end()) {
      throw InputError(item.at, "workers", fmt::format("{} is given twice", n));
    }
    if (scenario.total_batch && n > *scenario.total_batch) {
      throw InputError(
          item.at, "workers",
          fmt::format("{} workers share a total_batch of {}", n, *scenario.total_batch),
          "every worker needs at least one sample");
    }
    scenario.workers.push_back(n);
  }
  if (scenario.workers.empty()) throw InputError(list.at, "workers", "an empty list");
}

Bytes read_cap(const ConfigNode& node, const std::string& name) {
  const Bytes cap = to_bytes(node, name);
  if (cap < Bytes{1}) throw InputError(node.at, name, "must be at least one byte");
  return cap;
}

std::optional<std::int64_t> read_staleness(const ConfigNode& node) {
  constexpr std::int64_t kMostStaleness = 1'000'000;
  if (node.kind == ConfigNode::Kind::scalar && node.scalar == "none") return std::nullopt;
  try {
    return to_integer(node, "strategy.staleness", 0, kMostStaleness);
  } catch (const InputError&) {
    throw InputError(node.at, "strategy.staleness", "is no bound",
                     "none, 0 for synchronous steps, or by how many iterations a worker may be "
                     "ahead of the slowest");
  }
}

void read_servers(Fields& fields, StrategyOptions& options) {
  constexpr std::int64_t kMostServers = 1024;
  if (const ConfigNode* servers = fields.find("servers")) {
    options.servers = static_cast<int>(to_integer(*servers, "strategy.servers", 1, kMostServers));
  }
  if (const ConfigNode* bound = fields.find("staleness")) {
    options.staleness = read_staleness(*bound);
  }
  if (const ConfigNode* rate = fields.find("server_rate")) {
    constexpr Bandwidth kSlowest{1'000'000};
    options.server_rate = to_bandwidth(*rate, "strategy.server_rate");
    if (options.server_rate < kSlowest) {
      throw InputError(rate->at, "strategy.server_rate", "no server is that slow",
                       "at least 1MB/s; check its unit, as in 4GB/s");
    }
  }
}

/// What ddp's passes of a step do.
void read_passes(Fields& fields, StrategyOptions& options) {
  constexpr std::int64_t kMostPasses = 1024;
  constexpr std::string_view kCompressions[] = {"none", "bf16"};
  if (const ConfigNode* node = fields.find("accumulate")) {
    options.accumulate = static_cast<int>(to_integer(*node, "strategy.accumulate", 1, kMostPasses));
  }
  if (const ConfigNode* node = fields.find("no_sync")) {
    options.no_sync = to_switch(*node, "strategy.no_sync");
    if (options.no_sync && options.accumulate == 1) {
      throw InputError(node->at, "strategy.no_sync", "there is no pass that could do without",
                       "accumulate: 4, or leave it out");
    }
  }
  if (const ConfigNode* node = fields.find("find_unused_parameters")) {
    options.find_unused_parameters = to_switch(*node, "strategy.find_unused_parameters");
  }
  if (const ConfigNode* node = fields.find("compression")) {
    options.compression =
        static_cast<Compression>(to_choice(*node, "strategy.compression", kCompressions));
  }
}

/// A preset's values first; those given beside it replace them.
void read_cycles(Fields& fields, StrategyOptions& options) {
  std::vector<std::string_view> presets;
  for (const HorovodPreset& preset : horovod_presets()) presets.push_back(preset.name);
  if (const ConfigNode* node = fields.find("preset")) {
    take_preset(presets[to_choice(*node, "strategy.preset", presets)], "strategy.preset", options);
  }
  if (const ConfigNode* node = fields.find("cycle_time")) {
    options.cycle_time = to_time(*node, "strategy.cycle_time");
    if (options.cycle_time < kShortestCycle || options.cycle_time > kLongestCycle) {
      throw InputError(node->at, "strategy.cycle_time", "must be 1us to 10s",
                       "1ms, or 5ms before November 2020");
    }
  }
  if (const ConfigNode* node = fields.find("fusion_threshold")) {
    options.fusion_threshold = to_bytes(*node, "strategy.fusion_threshold");
  }
  if (const ConfigNode* node = fields.find("hierarchical")) {
    options.hierarchical = to_switch(*node, "strategy.hierarchical");
  }
}

void read_backups(const ConfigNode& node, Scenario& scenario) {
  constexpr int kLeft = 2;  // an exchange is between two at least
  scenario.backup_workers =
      static_cast<int>(to_integer(node, "strategy.backup_workers", 0, kMostWorkers));
  if (scenario.backup_workers == 0) return;
  for (const int n : scenario.workers) {
    if (n == 1 || n - scenario.backup_workers >= kLeft) continue;
    throw InputError(node.at, "strategy.backup_workers",
                     fmt::format("{} of {} workers leave {} to wait for", scenario.backup_workers,
                                 n, std::max(0, n - scenario.backup_workers)),
                     fmt::format("at least {}", kLeft));
  }
}

void read_strategy(Fields& top, Scenario& scenario) {
  StrategyOptions& options = scenario.strategy;
  Fields fields(top.require("strategy", "{kind: ddp}"), "strategy");
  const std::vector<std::string_view> kinds = strategy_names();
  options.kind = kinds[to_choice(fields.require("kind", "ddp"), "strategy.kind", kinds)];
  if (strategy_named(options.kind).has_buckets) {
    if (const ConfigNode* cap = fields.find("bucket_cap")) {
      // As PyTorch has it, a cap set by the user replaces the first one too.
      options.bucket_cap = read_cap(*cap, "strategy.bucket_cap");
      options.first_bucket_cap = options.bucket_cap;
    }
    if (const ConfigNode* cap = fields.find("first_bucket_cap")) {
      options.first_bucket_cap = read_cap(*cap, "strategy.first_bucket_cap");
    }
    if (const ConfigNode* on = fields.find("broadcast_buffers")) {
      options.broadcast_buffers = to_switch(*on, "strategy.broadcast_buffers");
    }
    read_passes(fields, options);
  }
  if (strategy_named(options.kind).has_cycles) read_cycles(fields, options);
  if (strategy_named(options.kind).one_process) {
    if (const ConfigNode* on = fields.find("gil")) options.gil = to_switch(*on, "strategy.gil");
  }
  if (strategy_named(options.kind).has_servers) read_servers(fields, options);
  if (options.kind == "all_reduce") {
    if (const ConfigNode* node = fields.find("backup_workers")) read_backups(*node, scenario);
  }
  if (options.kind == "heterogeneous") read_split(fields, scenario);
  fields.finish();
}

void read_run_options(Fields& fields, Scenario& scenario) {
  constexpr std::string_view kSync[] = {"step", "none"};
  constexpr std::string_view kComputes[] = {"real", "replay"};
  constexpr std::string_view kPrecisions[] = {"fp32", "tf32", "bf16"};
  if (const ConfigNode* node = fields.find("iterations")) {
    // The first iteration stays out of the statistics.
    scenario.iterations = static_cast<int>(to_integer(*node, "iterations", 2, kMostIterations));
  }
  if (const ConfigNode* node = fields.find("seed")) scenario.seed = to_unsigned(*node, "seed");
  if (const ConfigNode* node = fields.find("sync")) {
    scenario.sync = static_cast<Sync>(to_choice(*node, "sync", kSync));
  }
  if (const ConfigNode* node = fields.find("graph")) scenario.graph = to_switch(*node, "graph");
  if (const ConfigNode* node = fields.find("precision")) {
    scenario.precision = kPrecisions[to_choice(*node, "precision", kPrecisions)];
  }
  if (const ConfigNode* node = fields.find("noise")) scenario.noise = to_switch(*node, "noise");
  if (const ConfigNode* node = fields.find("compute")) {
    scenario.compute = static_cast<Compute>(to_choice(*node, "compute", kComputes));
  }
  if (const ConfigNode* node = fields.find("input")) scenario.input = read_input(*node);
  if (const ConfigNode* node = fields.find("dataset")) {
    scenario.dataset = read_dataset(*node, scenario);
  }
}

/// Work grows with all of them; this keeps any scenario to minutes.
void check_size(const Scenario& scenario, const ConfigNode& root) {
  constexpr std::int64_t kMostSteps = 2'000'000;
  std::int64_t steps = 0;
  for (int n : scenario.workers) {
    steps += std::int64_t{n} * scenario.iterations * scenario.strategy.accumulate;
  }
  if (steps > kMostSteps) {
    throw InputError(root.at, "iterations",
                     fmt::format("{} worker steps in all are too many", steps),
                     fmt::format("at most {}; ask for fewer iterations or workers", kMostSteps));
  }
}

/// What unlike devices cost and how many a host has is said by their list.
void check_unlike(const Scenario& scenario, const ConfigNode& root) {
  if (!scenario.step_times.empty()) {
    throw InputError(root.at, "step_time", "is of one kind of device, and there are several",
                     "leave it out; each kind has its calibration");
  }
  const int stated = scenario.platform.devices_per_host, listed = devices_on_host(scenario);
  if (stated == 0 || stated == listed) return;
  throw InputError(root.at, "platform.hosts.devices",
                   fmt::format("{} a host, and devices lists {}", stated, listed),
                   fmt::format("{}, or leave it out", listed));
}

void note_places(const ConfigNode& map, const std::string& path, Scenario& scenario) {
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    const std::string name = path.empty() ? map.keys[i].scalar : path + "." + map.keys[i].scalar;
    scenario.places[name] = map.items[i].at;
    note_places(map.items[i], name, scenario);
  }
}

}  // namespace

Scenario to_scenario(ConfigNode root, std::span<const std::string> overrides) {
  Scenario scenario;
  scenario.places[""] = {.file = root.at.file, .line = 0, .column = 0, .pointer = {}};
  for (const std::string& assignment : overrides) set_value(root, assignment);
  note_places(root, "", scenario);
  Fields fields(root, "");
  scenario.name = to_text(fields.require("name", "ResNet-50 on four GPUs"), "name");
  scenario.calibration =
      to_path(fields.require("calibration", "../calibration/data/h100x4.json"), "calibration");
  scenario.model = to_text(fields.require("model", "resnet50"), "model");
  read_batch(fields, scenario);
  read_workers(fields, scenario);
  if (const ConfigNode* node = fields.find("step_time")) {
    scenario.step_times = read_step_times(*node);
  }
  read_strategy(fields, scenario);
  if (const ConfigNode* node = fields.find("platform")) {
    scenario.platform = read_platform(*node, scenario.workers);
  }
  read_devices(fields, scenario);
  if (const ConfigNode* node = fields.find("stragglers")) read_stragglers(*node, scenario);
  read_run_options(fields, scenario);
  fields.finish();
  check_size(scenario, root);
  check_devices(scenario);
  if (!scenario.devices.empty()) check_unlike(scenario, root);
  if (!scenario.devices.empty()) scenario.platform.devices_per_host = devices_on_host(scenario);
  return scenario;
}

Scenario read_scenario(const std::string& file, std::span<const std::string> overrides) {
  Scenario scenario = to_scenario(read_yaml(file), overrides);
  read_costs(scenario);
  return scenario;
}

void read_costs(Scenario& scenario) {
  std::map<std::string, std::shared_ptr<const Calibration>> known;
  for (DeviceClass& devices : scenario.devices) {
    std::shared_ptr<const Calibration>& costs = known[devices.calibration];
    if (!costs) {
      costs = std::make_shared<const Calibration>(read_calibration(devices.calibration));
    }
    devices.costs = costs;
  }
}

PlatformOptions read_platform(const std::string& file) {
  const ConfigNode root = read_yaml(file);
  Fields fields(root, "");
  // Any number of workers: which runs it is for is not known here.
  const PlatformOptions platform =
      read_platform(fields.require("platform", "{network: {bandwidth: 1Gbit/s, latency: 20us}}"),
                    {static_cast<int>(kMostWorkers)});
  fields.finish();
  return platform;
}

Scenario parse_scenario(const std::string& text, const std::string& file,
                        std::span<const std::string> overrides) {
  return to_scenario(parse_yaml(text, file), overrides);
}

Location place_of(const Scenario& scenario, std::string key) {
  for (;;) {
    const auto found = scenario.places.find(key);
    if (found != scenario.places.end()) return found->second;
    if (key.empty()) return {};
    key.resize(key.find('.') == std::string::npos ? 0 : key.rfind('.'));
  }
}

bool applies_to(const Straggler& straggler, int worker) {
  return straggler.worker == kEveryWorker || straggler.worker == worker;
}

bool varies(const Straggler& straggler) {
  return varies(straggler.slowdown_varies) || varies(straggler.delay_varies);
}

int batch_of(const Scenario& scenario, int workers, int rank) {
  if (scenario.batch_per_worker) return *scenario.batch_per_worker;
  const int total = scenario.total_batch.value_or(0);
  const std::vector<int>& split = scenario.strategy.split;
  if (workers > 1 && !split.empty()) return split[static_cast<std::size_t>(rank) % split.size()];
  if (strategy_named(scenario.strategy.kind).one_process) {
    // As torch.chunk has it: shares of one size, the last one gets what is left.
    const int share = (total + workers - 1) / workers;
    return std::clamp(total - rank * share, 0, share);
  }
  return total / workers + (rank < total % workers ? 1 : 0);
}

std::int64_t steps_per_epoch(const Scenario& scenario, int workers) {
  std::int64_t a_step = 0;
  for (int rank = 0; rank < workers; ++rank) a_step += batch_of(scenario, workers, rank);
  a_step *= scenario.strategy.accumulate;
  const DatasetOptions& dataset = scenario.dataset.value();
  return (dataset.samples + (dataset.drop_last ? 0 : a_step - 1)) / a_step;
}

}  // namespace lockstep
