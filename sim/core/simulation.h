#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/exchange.h"
#include "sim/core/compiled_program.h"
#include "sim/core/engine.h"
#include "sim/core/event_queue.h"
#include "sim/core/noise.h"

namespace lockstep {

inline constexpr auto kHost = static_cast<std::uint32_t>(Lane::host);
inline constexpr auto kCompute = static_cast<std::uint32_t>(Lane::compute);
inline constexpr auto kCommunication = static_cast<std::uint32_t>(Lane::communication);
inline constexpr auto kLoader = static_cast<std::uint32_t>(Lane::loader);

static_assert(std::has_single_bit(kIterationWindow));
constexpr std::uint32_t slot_of(std::uint32_t iteration) {
  return iteration % kIterationWindow;
}

/// One run of the engine; `run` in engine.h is the way in.
///
/// Everything that happens in one instant happens first, in any order with the same outcome; then,
/// before the clock moves, rates are settled once: what runs at another rate than before is
/// re-timed. Ends are kept rather than remaining work: a change from slow-down a to b moves an end
/// e to now + (e - now) * b / a, rounded once to the nearest picosecond; work that began in the
/// same instant is timed afresh. A re-timed event's older copies stay in the queue and are
/// recognised by their generation.
class Simulation {
 public:
  Simulation(const TaskGraph& graph, const EngineOptions& options);
  EngineResult run();

 private:
  using LaneMask = std::uint32_t;
  static constexpr LaneMask kAllLanes = (1u << kLanes) - 1;

  /// The head of an in-order queue, and what runs.
  struct LaneState {
    std::int64_t start = 0, end = 0;
    std::int64_t work = 0;        ///< of the running task, noise included, undisturbed
    std::uint32_t next = 0;       ///< index of the head, or of the running task
    std::uint32_t iteration = 0;  ///< of the head
    std::uint32_t generation = 0;
    bool busy = false;
  };
  enum class Communication : std::uint8_t { none, waiting, transferring };
  struct Worker {
    const CompiledProgram* program = nullptr;
    std::array<LaneState, kLanes> lanes;
    std::vector<std::uint32_t> waits;  ///< dependencies left, by window slot and task
    std::array<std::uint32_t, kIterationWindow> tasks_left{};
    std::array<Slowdown, kIterationWindow> factors;
    std::array<bool, kIterationWindow> left_out{};  ///< iterations that went on without it
    std::array<bool, kIterationWindow> dropped{};   ///< those it came late for
    std::uint32_t first_open = 0;                   ///< iterations below are finished
    std::uint32_t queued = 0;                       ///< kernels on the launch queue
    std::uint32_t index = 0;
    Communication communication = Communication::none;
    bool unsettled = false;  ///< its compute lane may have to be re-timed
    Factor slowdown;         ///< applied to the running compute task
    bool recorded = false;   ///< its spans
    std::uint64_t first_span = 0;
  };
  /// One collective of one open iteration.
  struct Transfer {
    std::uint32_t launched = 0;
    std::uint32_t generation = 0;
    std::int64_t start = 0, end = 0;
    std::int64_t work = 0;
  };

  void open_iteration(Worker& worker, std::uint32_t iteration);
  void pump(Worker& worker, LaneMask lanes);
  LaneMask advance(Worker& worker, std::uint32_t lane);
  void start_work(Worker& worker, std::uint32_t lane, const CompiledTask& task, std::int64_t work);
  std::int64_t effective_work(Worker& worker, std::uint32_t lane, const CompiledTask& task);
  std::int64_t drawn_delay(const Worker& worker, std::uint32_t lane, const CompiledTask& task);
  bool leaves_out(Worker& worker, std::uint32_t lane);
  LaneMask complete(Worker& worker, std::uint32_t lane);
  void handle(const Event& event);

  bool launch(Worker& worker, const CompiledTask& task, std::uint32_t iteration);
  bool launch_late(Worker& worker, std::uint32_t collective, std::uint32_t iteration);
  bool holds(const Worker& worker, std::uint32_t collective, std::uint32_t iteration) const;
  void start_transfer(std::uint32_t collective, std::uint32_t iteration);
  void end_transfer(std::uint32_t slot_collective);
  void drain_exchange();
  CollectiveSpan& span(std::uint32_t iteration, std::uint32_t collective, std::uint32_t worker);

  bool unsettled() const {
    return !unsettled_.empty() || transfer_unsettled_ || exchange_unsettled();
  }
  bool exchange_unsettled() const { return exchange_ && exchange_->unsettled(); }
  void settle();
  void settle_compute(Worker& worker);
  void settle_transfer();
  void set_communication(Worker& worker, Communication state);
  void count_computing(int change);
  Factor compute_slowdown(const Worker& worker, const CompiledTask& task) const;
  Factor working_share(const Worker& worker) const;
  Factor exchange_slowdown() const {
    return computing_ > 0 ? graph_.collective_beside_compute : Factor{};
  }
  Factor transfer_slowdown(const Collective& collective) const {
    return computing_ > 0 ? graph_.collective_beside_compute * collective.beside_compute : Factor{};
  }

  std::int64_t later(std::int64_t duration) const;
  void check_finished() const;
  std::string stuck_head(const Worker& worker, std::uint32_t lane) const;

  const TaskGraph& graph_;
  const EngineOptions& options_;
  const WorkFactors factors_;
  const bool transfers_slow_;  ///< beside compute
  std::vector<CompiledProgram> programs_;
  std::vector<Worker> workers_;
  std::vector<Transfer> transfers_;    ///< by window slot and collective
  std::vector<std::uint32_t> closed_;  ///< by collective: iterations whose transfer has started
  std::vector<std::int64_t> passed_;   ///< by worker and delay: when pauses were last looked for
  EventQueue queue_;
  std::optional<Exchange> exchange_;
  EngineResult result_;

  std::int64_t now_ = 0;
  std::vector<std::uint32_t> unsettled_;  ///< workers
  std::uint32_t transferring_ = 0;        ///< index in transfers_ + 1; zero: none
  std::uint32_t transferring_iteration_ = 0;
  Factor transfer_applied_;  ///< slow-down of that transfer
  bool transfer_unsettled_ = false;
  bool draining_ = false;
  std::uint32_t computing_ = 0;  ///< workers whose compute lane is busy; only if transfers_slow_
  std::uint64_t spans_per_iteration_ = 0;
};

}  // namespace lockstep
