#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "sim/collectives/steps.h"
#include "sim/core/event_queue.h"
#include "sim/core/task_graph.h"
#include "sim/platform/network.h"
#include "sim/platform/sharing.h"

namespace lockstep {

/// Runs expanded collectives: every rank goes through the steps of its plan; a step is done when
/// what the rank sends in it and what it receives has arrived (and is added). A message starts when
/// its sender has entered its step and its receiver waits for it, waits its latency, then flows,
/// behind earlier ones on the same way, at the rate that its links share max-min fairly. Ranks end
/// a collective each for itself.
class Exchange {
 public:
  /// All must outlive it. `network` connects as many workers as the graph has. Messages are kept
  /// in `record`, in the order in which they arrive, unless it is null.
  Exchange(const TaskGraph& graph, const Network& network, EventQueue& queue,
           std::vector<MessageSpan>* record);

  void launch(std::uint32_t rank, std::uint32_t collective, std::uint32_t iteration,
              std::int64_t now);
  void handle(const Event& event);

  /// Flows came or went in this instant: settle() before the clock moves.
  bool unsettled() const { return unsettled_; }
  void touch() { unsettled_ = flowing_ > 0 || unsettled_; }
  /// Shares the links among the flows of this instant. `slowdown` holds while ranks compute: a
  /// rank then handles fewer bytes a second, and feeds its link for less of the time.
  void settle(std::int64_t now, Factor slowdown);

  /// Ranks whose first message started, and ranks that ended their collective, since last cleared.
  std::vector<std::uint32_t> began, ended;

 private:
  static constexpr std::uint32_t kOpenSteps = 2;  ///< of a rank at once, at most
  struct Rank {
    const StepPlan* plan = nullptr;  ///< null: in no collective
    std::uint32_t collective = 0;
    std::uint32_t next = 0;                           ///< step to enter
    std::uint32_t first = 0;                          ///< below it all steps are done
    std::array<std::uint32_t, kOpenSteps> missing{};  ///< messages of an open step
    bool begun = false;
    std::int64_t adding_until = 0;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ways;  ///< to peers: index in ways_
  };
  /// A message from one rank to another, from the first end that is ready for it on.
  struct Transit {
    std::int64_t bytes = 0;
    std::uint32_t collective = 0;
    std::uint32_t sent_in = 0, received_in = 0;  ///< steps
    std::int64_t ready = 0;                      ///< both ends
  };
  /// From a rank to a peer. Messages are numbered as they are sent, and as they are waited for.
  struct Way {
    std::uint32_t from = 0, to = 0;
    Route route;
    Bandwidth slowest{std::numeric_limits<std::int64_t>::max()};  ///< of its links
    std::array<Transit, kOpenSteps> transits;
    std::uint32_t sent = 0, awaited = 0;  ///< messages, counted at both ends
    std::uint32_t joined = 0;             ///< their latency is over
    std::uint32_t arrived = 0;
    std::int64_t end = 0;
    Rate rate = 0;  ///< of the message that flows; zero: not yet flowing
    std::uint32_t generation = 0;
  };

  void enter_steps(std::uint32_t rank, std::int64_t now);
  void send(std::uint32_t rank, const Message& message, std::int64_t now);
  void await(std::uint32_t rank, const Message& message, std::int64_t now);
  std::uint32_t way_between(std::uint32_t from, std::uint32_t to);
  void match(std::uint32_t way, std::uint32_t message, std::int64_t now);
  void begin(std::uint32_t rank);
  void flow(std::uint32_t way);
  void arrive(std::uint32_t way, std::int64_t now);
  void done(std::uint32_t rank, std::uint32_t step, std::int64_t now);
  static Transit& transit(Way& way, std::uint32_t message) {
    return way.transits[message % kOpenSteps];
  }

  const TaskGraph& graph_;
  const Network& network_;
  EventQueue& queue_;
  std::vector<MessageSpan>* record_;
  std::vector<StepPlan> plans_;  ///< by collective
  std::vector<Rank> ranks_;
  std::vector<Way> ways_;
  std::vector<std::uint32_t> active_;  ///< ways on which something flows, ascending
  Sharing sharing_;
  std::vector<Message> sends_, receives_;  ///< scratch
  Factor slowdown_;                        ///< of the last settling
  std::uint32_t flowing_ = 0;
  bool unsettled_ = false;
};

}  // namespace lockstep
