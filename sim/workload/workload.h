#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "sim/core/engine.h"
#include "sim/core/task_graph.h"
#include "sim/records/calibration.h"
#include "sim/records/profile.h"
#include "sim/records/run.h"
#include "sim/workload/buckets.h"

namespace lockstep {

/// What a collective of this size costs here: its entry in the graph, and the call on the host: one
/// of a row of calls, and what it takes besides behind launches of another kind.
struct CollectiveCost {
  Collective collective;
  Time host;
  Time between = {};
};

/// A worker stops for a while, once a step, before a part of it: for `time`, or as drawn.
struct StepDelay {
  StepPart part = StepPart::step;
  Time time;
  bool drawn = false;  ///< `time` as in DrawnDelay; slow-downs do not stretch it
  Variability variability = {};
  std::uint32_t stream = 0;
  bool operator==(const StepDelay&) const = default;
};

/// How a worker among unlike ones takes part in combining all gradients at once.
struct UnlikeWorker {
  bool cpu = false;   ///< computes on cores
  bool adds = false;  ///< the sum is made where it is
  Cost pack = {};     ///< of its gradients into one array
  Cost to_sum = {}, sum = {}, from_sum = {};
};

/// All that a strategy needs to compile one iteration. Workers whose costs are the same share a
/// profile, and so a program.
struct Workload {
  std::vector<Profile> profiles;                 ///< at the batch and on the device they stand for
  std::vector<std::uint32_t> profile_of_worker;  ///< size = workers in the graph
  std::vector<std::vector<StepDelay>> delays;    ///< by profile; empty: none
  std::optional<std::uint32_t> root_profile;     ///< of rank 0 alone, where the strategy has a root
  StrategyOptions strategy;
  int backup_workers = 0;            ///< that no step waits for
  std::vector<UnlikeWorker> unlike;  ///< by profile; empty: all workers are of one kind
  Sync sync = Sync::step;
  bool cpu = false;    ///< workers compute on the host's cores: no host lane
  bool graph = false;  ///< the step is launched as a whole
  bool input = false;  ///< batches are loaded and copied
  int loaders = 1;     ///< that load ahead, each a batch in turn; 0: the worker loads itself
  int launch_queue = 0;
  InterferenceFit interference;
  CopyTable bucket_in;  ///< gradients into a bucket; without points it is free
  CopyTable add;        ///< one array to another of that size; without points it is free
  std::function<CollectiveCost(CollectiveKind, Bytes)> collective;
  // For strategies whose graph depends on when things happen: what its run will have.
  std::vector<Slowdown> slowdowns;   ///< by worker; empty: none
  const Network* network = nullptr;  ///< for collectives step by step; outlives the workload
  Time control_round;                ///< GPUs: of the hosts' agreement, over their own network
};

/// DDP's first iteration differs from all others.
enum class Phase : std::uint8_t { first, steady };

/// One layer's part of backward, and one gradient in the order in which they get ready.
std::vector<std::uint32_t> backward_order(const Profile& profile);

/// In the order of the layers, and in that in which their gradients get ready.
std::vector<const Parameter*> parameters_of(const Profile& profile);
std::vector<const Parameter*> parameters_as_ready(const Profile& profile);
std::vector<Gradient> gradients_of(std::span<const Parameter* const> parameters);

/// Whether the layer counts the batches that it has normalised, which DDP broadcasts as well.
bool counts_batches(const Layer& layer);

/// Floating-point buffers, and the batch counters that lie beside them (an int64 per layer).
struct BufferBytes {
  Bytes floats, counters;
};
BufferBytes buffer_bytes(const Profile& profile);

/// What copying gradients of `bytes` in all into their bucket costs: linear between measured sizes,
/// at one rate beyond them.
Cost copy_cost(const CopyTable& table, Bytes bytes);

}  // namespace lockstep
