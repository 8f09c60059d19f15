#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/time.h"
#include "sim/core/units.h"
#include "sim/core/variability.h"
#include "sim/records/origin.h"

namespace lockstep {

struct Quantiles {
  Time mean, p10, p50, p90;
  bool operator==(const Quantiles&) const = default;
};

/// How gradients travel: as they are, or rounded to half their bytes.
enum class Compression { none, bf16 };

/// Names of strategies as in the design page: "single", "gather_scatter", "all_reduce", "ddp",
/// "data_parallel", "horovod", "parameter_server", "heterogeneous".
struct StrategyOptions {
  std::string kind = "single";
  Bytes bucket_cap{25 * 1024 * 1024};
  Bytes first_bucket_cap{1024 * 1024};
  bool broadcast_buffers = true;
  bool gil = false;  ///< data_parallel: its threads take turns in forward, as in Python
  // Of horovod; with a threshold of zero nothing is fused.
  Time cycle_time = Time::milliseconds(1);
  Bytes fusion_threshold{128 * 1024 * 1024};
  bool hierarchical = false;  ///< all-reduce within hosts, between them, and back
  // Of ddp.
  int accumulate = 1;                   ///< forwards and backwards of a step, each of a batch
  bool no_sync = false;                 ///< all but the last of them reduce nothing
  bool find_unused_parameters = false;  ///< buckets are never rebuilt, a bitmap is reduced
  Compression compression = Compression::none;
  int servers = 1;  ///< parameter_server: that the parameters are sharded over
  /// parameter_server: iterations that a worker may be ahead of the slowest; 0: synchronous, none:
  /// no bound.
  std::optional<std::int64_t> staleness = 0;
  /// parameter_server: gradients that a server adds or applies in a second; zero: as measured.
  Bandwidth server_rate = {};
  std::vector<int> split = {};   ///< heterogeneous: samples of each worker of a host; empty: even
  bool combine_on_host = false;  ///< heterogeneous: gradients are added in host memory
  bool operator==(const StrategyOptions&) const = default;
};

enum class Sync { step, none };

/// Replayed: a worker waits as long as its profile says instead of computing; everything else, the
/// communication above all, is real.
enum class Compute { real, replay };

/// A part of a step; `step` is before all others.
enum class StepPart { step, input, forward, backward };

/// One worker that was made slower than it is, on purpose, or each of them.
struct InjectedStraggler {
  int rank = 0;       ///< unless `all`
  double factor = 1;  ///< on the time of its forward, backward and optimizer
  Time delay;         ///< in every step, at the beginning of `part`
  StepPart part = StepPart::step;
  bool all = false;  ///< every rank, each drawing for itself
  Variability factor_varies = {}, delay_varies = {};
  bool operator==(const InjectedStraggler&) const = default;
};

/// A host whose link has another rate than those of the others.
struct SlowLink {
  int host = 0;
  Bandwidth link;
  bool operator==(const SlowLink&) const = default;
};

/// One bucket of one rank in one step, from the start of that step.
struct BucketTimes {
  Bytes bytes;
  Time ready, launch, done;
  bool operator==(const BucketTimes&) const = default;
};

struct RunRepeat {
  int process = 0;
  int warmup = 0;
  int steps = 0;
  Quantiles step;
  Time input;
  SpeedIndex speed_index;
  /// By what share of itself the index changed within a block, the median over the blocks.
  std::optional<double> speed_change;
  std::vector<Time> samples;  ///< on disk in <name>.samples.json, named "file#process"
  bool operator==(const RunRepeat&) const = default;
};

struct RunRank {
  int rank = 0;
  std::string device;
  Time step, forward, backward, optimizer;
  std::vector<BucketTimes> buckets;
  Bytes peak;
  bool operator==(const RunRank&) const = default;
};

/// How many updates were computed on parameters that lacked `staleness` of the updates applied
/// before them.
struct StalenessCount {
  std::int64_t staleness = 0;
  std::int64_t updates = 0;
  bool operator==(const StalenessCount&) const = default;
};

/// What a process of a parameter server's run sends or receives, in steps like the timed ones.
struct ProcessTraffic {
  std::string process;  ///< "worker 0", "server 1"
  Bytes out, in;        ///< while every worker does one step
  /// Of its link, each way: the share of time that it is busy. Zero: the link's rate is not known.
  double out_busy = 0, in_busy = 0;
  bool operator==(const ProcessTraffic&) const = default;
};

/// What the servers of a parameter server saw.
struct ServerStatistics {
  double throughput = 0;                  ///< samples a second, all workers
  std::vector<StalenessCount> staleness;  ///< ascending; an update of each shard counts
  std::vector<ProcessTraffic> traffic;    ///< workers, then servers
  bool operator==(const ServerStatistics&) const = default;
};

double mean_staleness(const std::vector<StalenessCount>& counts);

struct Parity {
  double relative_l2 = 0;
  int steps = 0;
  bool operator==(const Parity&) const = default;
};

struct Failure {
  int rank = 0;
  std::string what;
  int after_steps = 0;
  bool operator==(const Failure&) const = default;
};

/// Workers of one kind among unlike ones, rank by rank.
struct RunDevices {
  std::string calibration;  ///< id of theirs, of the same visit
  int count = 1;
  bool operator==(const RunDevices&) const = default;
};

/// A real run of one configuration.
struct Run {
  std::string id;
  Origin origin;
  std::string calibration;  ///< id of the calibration of the same visit
  std::string model;
  int batch_per_worker = 0;
  int workers = 1;
  std::vector<RunDevices> devices = {};  ///< of a host; empty: all as `calibration` says
  StrategyOptions strategy;
  std::string precision = "fp32";
  Sync sync = Sync::step;
  bool graph = false;
  Compute compute = Compute::real;
  int slow_motion = 1;    ///< a replay waited so many times as long as its profile says
  int hosts = 1;          ///< that the workers were spread over, evenly, rank by rank
  bool emulated = false;  ///< the hosts were parts of one machine, whose cores they shared
  Bandwidth link;         ///< of each host, each way, as its user states it; zero: not stated
  Time link_latency;      ///< of each link, beside what a message takes on one host
  std::vector<SlowLink> slow_links;
  std::vector<InjectedStraggler> stragglers;
  std::string dataset = "synthetic";
  std::int64_t dataset_samples = 0;
  int loaders = 0;     ///< threads of a worker that load batches ahead; 0: it loads them itself
  bool stable = true;  ///< is_stable, were steps to follow the index entirely
  std::vector<RunRepeat> repeats;
  std::vector<RunRank> ranks;
  std::optional<Parity> parity;
  std::optional<ServerStatistics> servers = {};
  std::optional<Failure> failure;
  bool operator==(const Run&) const = default;
};

/// How far apart the repeats lie, as a share of their mean, once the speed index to the power of
/// `exponent` is taken out of them; 0 with one repeat.
double repeats_apart(const Run& run, double exponent);
/// Beyond it the machine changed in ways that the index does not see.
inline constexpr double kRepeatsApart = 0.25;

/// Whether most repeats kept their speed within their blocks and the repeats agree. `exponent` says
/// how far steps follow the index: 1, entirely; 0, not at all. Of a run that does not say how the
/// index changed, what its runner found.
bool is_stable(const Run& run, double exponent);

/// Where the raw samples of a file of runs are: "a.samples.json" beside "a.json".
std::string samples_file(const std::string& runs_file);

/// Reads a run and, where it is there, its samples file.
Run read_run(const std::string& file);
/// Writes `file` and, beside it, the samples; both whole or not at all.
void write_run(const Run& run, const std::string& file);

/// Several runs of a visit in one file: {"format":1,"kind":"runs","runs":[...]}; read_runs also
/// takes a single run.
std::vector<Run> read_runs(const std::string& file);
void write_runs(const std::vector<Run>& runs, const std::string& file);

}  // namespace lockstep
