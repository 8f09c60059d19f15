#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/core/task_graph.h"
#include "sim/core/time.h"
#include "sim/core/units.h"
#include "sim/platform/network.h"

namespace lockstep {

/// Cores that the processes of a host share. Who computes, sends, receives or serves wants them;
/// where more are wanted than there are, everything takes its turn and so many times as long.
struct SharedCores {
  /// By process, workers before servers; empty: each has cores of its own.
  std::vector<std::uint32_t> host_of = {};
  double cores = 1;    ///< of a host
  double threads = 1;  ///< cores that a computing worker wants
  /// Cores that a process wants which sends or receives as fast as it can; of a link that it shares
  /// with others, as much less.
  double transfer = 1;
  /// How much longer `m` workers take to compute beside each other, entry m - 1; more than there
  /// are entries: the last. Turns that they take for want of cores are in it.
  std::vector<Factor> together{Factor{}};
  bool slow_transfers = false;  ///< a transfer is work of its host's cores, and takes turns, too
};

/// What one message of a way costs beside its links.
struct MessageCost {
  Time latency;    ///< added to that of the route
  Bandwidth rate;  ///< that its ends can handle, where links would allow more; zero: no bound
};

/// What a server takes for its shard.
struct ServerCost {
  Time add;    ///< to add a gradient to others
  Time apply;  ///< to apply an update
  Time copy;   ///< to copy the parameters for a reply; a synchronous server sends them as they are
};

/// Workers and the servers that hold their parameters. An iteration of a worker: stop for as long
/// as its delays say, compute, pack the gradients into a message for each server, push them all at
/// once, receive the parameters that each server sends back, unpack them. A server takes what
/// arrives in the order of its arrival. Synchronous (staleness 0): it adds up the gradients of all
/// workers, applies the sum and answers all. Else it applies each gradient as it comes and answers
/// its worker, with a bound s only once that is at most s iterations ahead of the slowest.
struct ServerSystem {
  std::vector<Bytes> shards;              ///< by server, what it holds
  std::optional<std::int64_t> staleness;  ///< none: no bound
  /// By worker and iteration, undisturbed; who does more iterations begins again at the first.
  std::vector<std::vector<Time>> compute;
  /// By worker, drawn for (seed, worker, iteration + first_draw); empty: none. Nothing leaves a
  /// worker before it has computed all, so that the part in which it stops does not matter. Who
  /// stops keeps a core busy, as stragglers of the runner do, and no want of cores makes it longer.
  std::vector<std::vector<DrawnDelay>> delays = {};
  std::uint64_t seed = 1;
  std::uint32_t first_draw = 0;
  std::vector<Time> pack, unpack;  ///< by worker
  std::vector<ServerCost> servers;
  std::vector<MessageCost> messages;  ///< by server, to it and from it
  const Network* network = nullptr;   ///< connects workers, then servers; outlives the run
  SharedCores cores;
  std::uint32_t iterations = 1;  ///< that each worker does at least

  std::uint32_t workers() const { return static_cast<std::uint32_t>(compute.size()); }
  std::uint32_t server_count() const { return static_cast<std::uint32_t>(shards.size()); }
};

/// One iteration of a worker.
struct ServerIteration {
  Time start = {};
  Time begun = {};                  ///< to compute, after its delays
  Time computed = {}, packed = {};  ///< ends
  Time received = {};               ///< the last server's answer
  Time end = {};
  Time transferring = {};  ///< in which one of its messages was on its way
};

/// One gradient on its way through a server, and the parameters back.
struct ServerUpdate {
  std::uint32_t server = 0, worker = 0, iteration = 0;
  std::int64_t computed_on = 0;  ///< updates that the parameters held on which it was computed
  std::int64_t applied_at = 0;   ///< updates that they held when it was applied
  Time sent = {}, arrived = {};
  Time served = {}, applied = {};    ///< from its turn until the server has applied it
  Time replied = {}, received = {};  ///< the way back
  std::int64_t staleness() const { return applied_at - computed_on; }
};

struct ServerRun {
  std::vector<std::vector<ServerIteration>> iterations;  ///< by worker, finished ones
  std::vector<ServerUpdate> updates;  ///< of finished iterations, as they were sent
  std::vector<Bytes> carried;         ///< by directed link of the network, in all
  Time end;
};

/// From time zero until each worker has done its iterations; who is faster goes on meanwhile.
/// Deterministic. Throws InputError where a worker starves (the others do twenty times what was
/// asked for, and it not three iterations), where all wait for each other, and where delays lead
/// beyond what the clock holds.
ServerRun run(const ServerSystem& system);

}  // namespace lockstep
