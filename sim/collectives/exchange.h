#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/steps.h"
#include "sim/core/event_queue.h"
#include "sim/core/task_graph.h"
#include "sim/platform/network.h"
#include "sim/platform/sharing.h"

namespace lockstep {

/// Runs expanded collectives: every rank is a step counter; a step ends when what the rank sends to
/// its right neighbour and what it receives from its left one have arrived (and are reduced). A
/// message starts when both ends have reached its step, waits its latency, then flows at the rate
/// that its links share max-min fairly. Ranks end a collective each for itself.
class Exchange {
 public:
  /// All must outlive it. `network` connects as many workers as the graph has.
  Exchange(const TaskGraph& graph, const Network& network, EventQueue& queue);

  void launch(std::uint32_t rank, std::uint32_t collective, std::uint32_t iteration,
              std::int64_t now);
  void handle(const Event& event);

  /// Flows came or went in this instant: settle() before the clock moves.
  bool unsettled() const { return unsettled_; }
  void touch() { unsettled_ = flowing_ > 0 || unsettled_; }
  /// Shares the links among the flows of this instant. `slowdown` holds while ranks compute.
  void settle(std::int64_t now, Factor slowdown);

  /// Ranks whose first message started, and ranks that ended their collective, since last cleared.
  std::vector<std::uint32_t> began, ended;

 private:
  struct Rank {
    const StepPlan* plan = nullptr;  ///< null: in no collective
    std::uint32_t collective = 0, iteration = 0, step = 0;
    bool sent = false, received = false;  ///< of this step, or nothing to send, to receive
    bool sending = false, begun = false;
  };
  /// The message from a rank to its right neighbour; one at a time.
  struct Flow {
    Route route;
    std::int64_t bytes = 0;
    std::int64_t end = 0;
    std::int64_t rate = 0;  ///< of Sharing; zero: not yet flowing
    std::uint32_t generation = 0;
  };

  std::uint32_t right(std::uint32_t rank) const;
  std::uint32_t left(std::uint32_t rank) const;
  void enter_step(std::uint32_t rank, std::int64_t now);
  void try_message(std::uint32_t sender, std::int64_t now);
  void begin(std::uint32_t rank);
  void join(std::uint32_t sender);
  void arrive(std::uint32_t sender, std::int64_t now);
  void advance(std::uint32_t rank, std::int64_t now);

  const TaskGraph& graph_;
  EventQueue& queue_;
  std::vector<StepPlan> plans_;  ///< by collective
  std::vector<Rank> ranks_;
  std::vector<Flow> flows_;  ///< by sending rank
  Sharing sharing_;
  std::uint32_t flowing_ = 0;
  bool unsettled_ = false;
};

}  // namespace lockstep
