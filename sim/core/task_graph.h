#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/time.h"
#include "sim/core/units.h"
#include "sim/core/variability.h"

namespace lockstep {

/// The five in-order queues of a worker. On a CPU worker the host computes: its programs use
/// `compute` for that and leave `host` empty.
enum class Lane : std::uint8_t { host, compute, communication, copy, loader };
inline constexpr std::size_t kLanes = 5;

enum class TaskKind : std::uint8_t {
  issue,  ///< host time to launch a device task
  forward,
  backward,
  bucket_copy,  ///< gradients into or out of a bucket
  collective,   ///< rendezvous and transfer; its time comes from Program-independent `Collective`
  reduce,       ///< gradients of other workers, added by the worker itself
  optimizer,
  input,  ///< loading or copying a batch
  mark,   ///< an event recorded in a stream, or a synchronisation: no work of its own
};

inline constexpr std::int32_t kNoCollective = -1;

/// One piece of work of one worker. Plain, so that a graph is a few flat arrays.
struct Task {
  Time work = {};                           ///< at rate one; zero for a collective
  std::int32_t collective = kNoCollective;  ///< index in TaskGraph::collectives
  std::uint32_t name = 0;                   ///< index in TaskGraph::names
  std::uint16_t interference = 0;           ///< index in TaskGraph::interference
  std::uint16_t launches = 0;               ///< kernels it puts on the launch queue (issue tasks)
  TaskKind kind = TaskKind::mark;
  Lane lane = Lane::compute;
  std::uint16_t drawn = 0;  ///< index in TaskGraph::delays + 1: it lasts as drawn, its work is zero
  bool operator==(const Task&) const = default;
};

/// One iteration of one worker, immutable. `tasks` is grouped by lane and, within a lane, in issue
/// order: lane l owns tasks [lane_begin[l], lane_begin[l+1]). A lane's head starts when its
/// dependencies are met; order within a lane needs no edge. Successors of task t are
/// successors[first_successor[t] .. first_successor[t+1]). The next iteration appends the same
/// tasks to the same lanes: what must not run ahead is expressed by a mark in the lane it must wait
/// for.
struct Program {
  std::vector<Task> tasks;
  std::array<std::uint32_t, kLanes + 1> lane_begin{};
  std::vector<std::uint32_t> first_successor;
  std::vector<std::uint32_t> successors;
  std::vector<std::uint32_t> dependency_count;
  bool operator==(const Program&) const = default;
};

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  broadcast,
  gather,
  scatter,
  reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
};

/// How the ranks exchange messages where a collective runs step by step;
/// sim/collectives/algorithms.h says which collectives each can do.
enum class Algorithm : std::uint8_t {
  ring,                ///< a broadcast goes down the chain
  gloo_ring,           ///< as Gloo does it: chunks in segments, two steps under way
  recursive_doubling,  ///< exchange of all one has, log2(n) times
  halving_doubling,    ///< halves of halves, and back
  tree,                ///< binomial
  linear,              ///< all at once, to or from the root or between all
  chain,               ///< from rank to rank in segments
  recursive_halving,   ///< halves of halves
  pairwise,            ///< straight to each other rank, one a step
  hierarchical,        ///< within hosts, between hosts, within hosts
  double_tree,         ///< two trees with half of the array each
};

/// What a step of a collective costs beside what its links say: latency and bandwidth as they are
/// at the size of its messages.
struct StepCost {
  Time latency = {};    ///< added to the latency of the route
  Bandwidth rate = {};  ///< of one rank's messages, where links would allow more; zero: no bound
  Bandwidth reduction = {};  ///< bytes a rank reduces per second; zero: free
  Bytes element{4};          ///< chunks are whole elements
  Bytes segment = {};  ///< chains and double trees cut it in pieces of this; zero: as few as can be
};

/// One collective of an iteration, over all workers of the graph. Bytes are one rank's array: a
/// gather brings n of them to the root, a scatter takes n of them from there; of all-gather,
/// reduce-scatter and all-to-all they are the whole array, of which a rank brings or gets one part
/// in n (as nccl-tests counts). Every worker's program holds one task that refers to it, on its
/// communication lane.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes = {};
  Time duration = {};  ///< from the last launch to the end, alone; unused when expanded
  Algorithm algorithm = Algorithm::ring;
  bool expanded = false;  ///< run step by step over the links of EngineOptions::network
  StepCost step = {};     ///< unused unless expanded
  std::uint32_t root = 0;
  std::uint32_t per_host = 1;  ///< ranks, hosts filled one after another: for `hierarchical`
  // Unused when expanded, beside compute: for what does not grow with the bytes.
  Factor beside_compute = {};  ///< it slows by, on top of the graph's
  Factor working = {};         ///< the share of its time in which compute is slowed, at most one
};

/// How much a compute task slows while a collective of its worker waits for a peer, or transfers.
struct Interference {
  Factor waiting = {};
  Factor transferring = {};
};

/// A pause of a worker that is drawn anew in each step: `time` times the draw, or, by the clock,
/// `time` for each pause that fell due since the worker last got here. Slow-downs do not stretch
/// it.
struct DrawnDelay {
  Time time = {};
  Variability variability = {};
  std::uint32_t stream = 0;  ///< tells its draws from those of others
};

/// One iteration of all workers. Host tasks with `launches` > 0 have a successor on another lane:
/// the task that works off these kernels (where there are several, the first in lane order).
struct TaskGraph {
  std::vector<Program> programs;
  std::vector<std::uint32_t> program_of_worker;  ///< size = workers
  std::vector<Collective> collectives;
  std::vector<Interference> interference{Interference{}};  ///< entry 0: undisturbed
  Factor collective_beside_compute;  ///< a transfer slows by this while a participant computes
  std::uint32_t launch_queue = 0;    ///< kernels the host may run ahead; 0: no limit
  std::vector<std::string> names;
  std::vector<DrawnDelay> delays = {};
  /// Collectives start when all but so many workers have launched them (Chen et al. 2016). Who
  /// comes later is dropped: it goes on at once, or with the end of a transfer under way, and
  /// leaves out whole iterations that the others have begun to exchange by the time it gets to
  /// them.
  std::uint32_t backups = 0;
};

/// Throws InputError where the parts of a graph do not fit: a worker without a program, a
/// collective that a worker's communication lane does not hold exactly once, work below zero,
/// launches that no task works off, factors of zero, a collective without a duration above or equal
/// to zero.
void validate(const TaskGraph& graph);

/// "worker's lane task #index (name)", for messages.
std::string describe_task(const TaskGraph& graph, const Program& program, std::uint32_t task);
std::string_view to_string(Lane lane);
std::string_view to_string(TaskKind kind);
std::string_view to_string(CollectiveKind kind);
std::string_view to_string(Algorithm algorithm);

/// Collects tasks in any lane order and edges between them, then lays them out as a Program.
class ProgramBuilder {
 public:
  using Id = std::uint32_t;
  Id add(const Task& task);
  /// `after` cannot start before `before` has ended.
  void edge(Id before, Id after);
  /// Tasks that the lane holds so far: the next one's place in it.
  std::uint32_t count(Lane lane) const { return count_[static_cast<std::size_t>(lane)]; }
  /// Throws InputError if the edges and lane orders together form a cycle.
  Program build() const;

 private:
  std::vector<Task> tasks_;
  std::vector<std::pair<Id, Id>> edges_;
  std::array<std::uint32_t, kLanes> count_{};
};

}  // namespace lockstep
