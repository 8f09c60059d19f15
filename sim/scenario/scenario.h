#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/task_graph.h"
#include "sim/core/time.h"
#include "sim/core/units.h"
#include "sim/core/variability.h"
#include "sim/records/run.h"
#include "sim/scenario/config_node.h"

namespace lockstep {

/// A straggler that stands for every worker.
inline constexpr int kEveryWorker = -1;

/// One worker that is slower than its profile says, or each: `slowdown` in every task, and `delay`
/// once a step, before a part of it; either times what is drawn for the worker and step.
struct Straggler {
  int worker = 0;  ///< or kEveryWorker
  Factor slowdown = {};
  Time delay = {};
  StepPart part = StepPart::step;
  Variability slowdown_varies = {}, delay_varies = {};
};

bool applies_to(const Straggler& straggler, int worker);
/// Whether its slow-down or its delay is drawn.
bool varies(const Straggler& straggler);

/// What a step of one worker takes at a batch, loading left out, where that is known and the device
/// was never calibrated: its profile then tells how the parts of a step relate, and this how long.
struct StepTime {
  int batch = 1;
  Time time = {};
};

/// A link that each device of a host has to the others.
struct DeviceLink {
  Bandwidth bandwidth;
  Time latency = {};  ///< of a message
};

/// One link from every host to a switch that never blocks.
struct NetworkOptions {
  Bandwidth bandwidth;
  Time latency = {};              ///< of a link, beside what a message takes on one host
  std::optional<Bytes> mtu = {};  ///< messages go in TCP segments that fit; none: as the backend
  std::vector<SlowLink> slow_links = {};
  bool measured = false;  ///< collective tables across hosts stand for all this
};

/// How collectives get their time.
struct CollectiveModel {
  bool table = false;  ///< measured times; where n was not measured, the nearest measured n scaled
  std::optional<Algorithm> all_reduce;  ///< step by step over the network; none: the backend's own
};

struct PlatformOptions {
  int devices_per_host = 0;               ///< 0: one with a network, else all workers share a host
  std::optional<DeviceLink> device_link;  ///< in place of collective tables measured on one host
  bool emulated = false;  ///< hosts are parts of one machine, whose cores they share
  std::optional<NetworkOptions> network;
  /// Unless given, step by step where workers are on several hosts of a network, else the table.
  std::optional<CollectiveModel> collective;
};

/// How batches get to the device.
struct InputOptions {
  bool on = false;
  int workers = 1;                 ///< that load ahead; 0: the worker loads its own batches
  std::optional<Time> load, copy;  ///< of one batch; none: as the profile measured it
};

struct DatasetOptions {
  std::int64_t samples = 0;
  bool drop_last = true;  ///< an epoch leaves out the samples that fill no batch
};

struct Calibration;

/// Workers of one kind, so many on each host.
struct DeviceClass {
  std::string calibration;  ///< path of the file, resolved
  int count = 1;
  std::shared_ptr<const Calibration> costs = {};  ///< what the file says, see read_costs
};

/// A question to the simulator: what design.md calls a scenario, checked.
struct Scenario {
  std::string name;
  std::string calibration;  ///< path of the file, resolved
  std::string model;
  std::vector<StepTime> step_times;     ///< by rising batch; none: as calibrated
  std::optional<int> batch_per_worker;  ///< weak scaling; exactly one of the two is set
  std::optional<int> total_batch;       ///< strong scaling
  std::vector<int> workers;
  StrategyOptions strategy;
  bool split_measured = false;       ///< heterogeneous: shares are found by the workers' speeds
  std::vector<DeviceClass> devices;  ///< of each host, ranks in this order; empty: all alike
  PlatformOptions platform;
  std::vector<Straggler> stragglers;
  int backup_workers = 0;  ///< of all workers, so many that a step does not wait for
  int iterations = 50;
  std::uint64_t seed = 1;
  Sync sync = Sync::step;
  bool graph = false;
  std::string precision = "fp32";
  bool noise = true;
  Compute compute = Compute::real;
  int slow_motion = 1;  ///< replayed: workers wait so many times as long as profiled
  InputOptions input;
  std::optional<DatasetOptions> dataset;
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
/// From a file's tree, or a part of one.
Scenario to_scenario(ConfigNode root, std::span<const std::string> overrides = {});

/// Reads a file that holds a scenario's `platform` alone: where runs were measured, for example.
PlatformOptions read_platform(const std::string& file);

/// Reads the calibrations of `devices` (read_scenario has done so). Throws InputError.
void read_costs(Scenario& scenario);

/// Workers of a host with devices of several kinds; zero where there are none.
int devices_on_host(const Scenario& scenario);

/// Samples of worker `rank` of `workers`; with a split as that says, alike on all hosts; else
/// shares of an uneven batch differ by at most one, the larger ones first. In data_parallel all are
/// as large as the first but the last, which gets what is left; where nothing is left for a device,
/// zero.
int batch_of(const Scenario& scenario, int workers, int rank);

/// Steps of an epoch over the data set, which must be there.
std::int64_t steps_per_epoch(const Scenario& scenario, int workers);

}  // namespace lockstep
