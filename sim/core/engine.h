#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/collectives/algorithms/message.h"
#include "sim/core/task_graph.h"
#include "sim/core/time.h"
#include "sim/core/units.h"

namespace lockstep {

class Network;

/// Relative standard deviations of log-normal factors with median one.
struct NoiseLevels {
  double process = 0;  ///< one draw per worker and run
  double step = 0;     ///< one draw per worker and iteration, over all its lanes
  double task = 0;     ///< one draw per task, and per collective
};

/// A factor that is drawn for each worker and step.
struct DrawnFactor {
  Variability variability = {};
  std::uint32_t stream = 0;  ///< tells its draws from those of others
  bool operator==(const DrawnFactor&) const = default;
};

/// Slow-downs of one worker (a straggler): its work takes this many times as long.
struct Slowdown {
  Factor host = {};         ///< host and loader lanes
  Factor device = {};       ///< compute and copy lanes
  std::uint32_t drawn = 0;  ///< besides, those of EngineOptions::drawn; index + 1, zero: none
};

struct EngineOptions {
  std::uint32_t iterations = 1;
  std::uint64_t seed = 1;
  NoiseLevels noise = {};
  std::vector<Slowdown> slowdowns = {};              ///< by worker; empty: none
  std::vector<std::vector<DrawnFactor>> drawn = {};  ///< that a worker may have together
  bool record_spans = false;                         ///< fill EngineResult::tasks
  std::optional<std::uint32_t> spans_of = {};        ///< of this worker alone
  bool record_messages = false;                      ///< fill EngineResult::messages
  const Network* network = nullptr;  ///< for expanded collectives; must outlive the run
};

/// One task as it ran, from its start to its end. A collective's starts at its launch.
struct TaskSpan {
  std::uint32_t worker = 0;
  std::uint32_t iteration = 0;
  std::uint32_t task = 0;  ///< index in the worker's Program::tasks
  Time start = {}, end = {};
  bool operator==(const TaskSpan&) const = default;
};

/// One rank's part in a collective: it waits in [launch, transfer_start), transfers in
/// [transfer_start, end).
struct CollectiveSpan {
  std::uint32_t collective = 0;  ///< index in TaskGraph::collectives
  std::uint32_t iteration = 0;
  std::uint32_t worker = 0;
  Time launch = {}, transfer_start = {}, end = {};
  bool operator==(const CollectiveSpan&) const = default;
};

struct EngineResult {
  /// step_end[worker][iteration]: when the worker's last task of that iteration ended.
  std::vector<std::vector<Time>> step_end;
  std::uint64_t completed_tasks = 0;
  std::vector<TaskSpan> tasks;              ///< by iteration, worker, task; empty unless recorded
  std::optional<std::uint32_t> spans_of;    ///< the only worker among them; none: all
  std::vector<CollectiveSpan> collectives;  ///< by iteration, collective, worker
  std::vector<MessageSpan> messages;        ///< as they arrived; empty unless recorded
  bool operator==(const EngineResult&) const = default;
};

/// A worker's lanes enter iteration k only when it has finished iteration k - kIterationWindow: so
/// far may a host, a loader or a stream that nothing blocks run ahead.
inline constexpr std::uint32_t kIterationWindow = 4;

/// Runs `options.iterations` iterations of the graph from time zero, lane state carried over.
/// Deterministic: equal input, equal result to the bit. Throws InputError where the graph is
/// inconsistent (validate in task_graph.h) or gets stuck, naming the tasks that wait.
EngineResult run(const TaskGraph& graph, const EngineOptions& options);

}  // namespace lockstep
