// The half of Simulation that deals with collectives and with rates.

#include "sim/core/error.h"
#include "sim/core/simulation.h"

namespace lockstep {
namespace {

/// Where an end moves when its slow-down changes now.
std::int64_t moved_end(std::int64_t now, std::int64_t end, Factor before, Factor after) {
  return now + multiply_divide(end - now, static_cast<std::int64_t>(after.raw()),
                               static_cast<std::int64_t>(before.raw()));
}

std::int64_t scaled(std::int64_t work, Factor factor) {
  return scale(Time::picoseconds(work), factor).ps();
}

}  // namespace

CollectiveSpan& Simulation::span(std::uint32_t iteration, std::uint32_t collective,
                                 std::uint32_t worker) {
  return result_.collectives[(std::size_t{iteration} * graph_.collectives.size() + collective) *
                                 workers_.size() +
                             worker];
}

/// False where the worker need not wait: the others are through.
bool Simulation::launch(Worker& worker, const CompiledTask& task, std::uint32_t iteration) {
  const auto collective = static_cast<std::uint32_t>(task.collective);
  const Time now = Time::picoseconds(now_);
  span(iteration, collective, worker.index) = {collective, iteration, worker.index, now, now, now};
  bool& dropped = worker.dropped[slot_of(iteration)];
  if (closed_[collective] > iteration) {
    dropped = true;
    return launch_late(worker, collective, iteration);
  }
  set_communication(worker, Communication::waiting);
  if (graph_.collectives[collective].expanded) {
    exchange_->launch(worker.index, collective, iteration, now_);
    drain_exchange();
    return true;
  }
  if (dropped) return true;  // its other gradients do not count either
  Transfer& transfer = transfers_[slot_of(iteration) * graph_.collectives.size() + collective];
  if (++transfer.launched == workers_.size() - graph_.backups) {
    start_transfer(collective, iteration);
  }
  return true;
}

/// The others transfer without this worker, which goes on when they do, or have done so.
bool Simulation::launch_late(Worker& worker, std::uint32_t collective, std::uint32_t iteration) {
  const std::size_t index = slot_of(iteration) * graph_.collectives.size() + collective;
  if (transferring_ != index + 1 || transferring_iteration_ != iteration) return false;
  set_communication(worker, Communication::transferring);
  return true;
}

/// Whether the worker's communication lane has come to this collective.
bool Simulation::holds(const Worker& worker, std::uint32_t collective,
                       std::uint32_t iteration) const {
  const LaneState& lane = worker.lanes[kCommunication];
  return lane.busy && lane.iteration == iteration &&
         worker.program->tasks[lane.next].collective == static_cast<std::int32_t>(collective);
}

/// The last rank has launched.
void Simulation::start_transfer(std::uint32_t collective, std::uint32_t iteration) {
  const std::size_t index = slot_of(iteration) * graph_.collectives.size() + collective;
  Transfer& transfer = transfers_[index];
  transfer.launched = 0;
  transfer.start = now_;
  const Collective& transferred = graph_.collectives[collective];
  transfer.work = transferred.duration.ps();
  if (factors_.vary_by_task()) {
    transfer.work = scaled(transfer.work, factors_.collective(iteration, collective));
  }
  transfer_applied_ = transfer_slowdown(transferred);
  transfer.end = later(scaled(transfer.work, transfer_applied_));
  // Every rank's communication lane holds this collective, so no other can be transferring.
  LOCKSTEP_ASSERT(transferring_ == 0, "one transfer at a time");
  transferring_ = static_cast<std::uint32_t>(index) + 1;
  transferring_iteration_ = iteration;
  closed_[collective] = iteration + 1;
  for (Worker& worker : workers_) {
    if (!holds(worker, collective, iteration)) continue;
    span(iteration, collective, worker.index).transfer_start = Time::picoseconds(now_);
    set_communication(worker, Communication::transferring);
  }
  queue_.push(transfer.end, EventKind::transfer_end, static_cast<std::uint32_t>(index),
              transfer.generation);
}

void Simulation::end_transfer(std::uint32_t index) {
  const auto collective = static_cast<std::uint32_t>(index % graph_.collectives.size());
  const std::uint32_t iteration = transferring_iteration_;
  transferring_ = 0;
  for (Worker& worker : workers_) {
    if (!holds(worker, collective, iteration)) continue;
    span(iteration, collective, worker.index).end = Time::picoseconds(now_);
    set_communication(worker, Communication::none);
  }
  for (Worker& worker : workers_) {
    if (!holds(worker, collective, iteration)) continue;
    pump(worker, complete(worker, kCommunication) | 1u << kCommunication);
  }
}

/// Takes over what the exchange reports. Going on with a worker can launch its next collective and
/// so report more: only the outermost call works through the lists.
void Simulation::drain_exchange() {
  if (draining_) return;
  draining_ = true;
  const auto running_span = [&](const Worker& worker) -> CollectiveSpan& {
    const LaneState& lane = worker.lanes[kCommunication];
    const std::int32_t collective = worker.program->tasks[lane.next].collective;
    return span(lane.iteration, static_cast<std::uint32_t>(collective), worker.index);
  };
  while (!exchange_->began.empty() || !exchange_->ended.empty()) {
    for (const std::uint32_t rank : exchange_->began) {
      running_span(workers_[rank]).transfer_start = Time::picoseconds(now_);
      set_communication(workers_[rank], Communication::transferring);
    }
    exchange_->began.clear();
    if (exchange_->ended.empty()) break;
    const std::uint32_t rank = exchange_->ended.back();
    exchange_->ended.pop_back();
    Worker& worker = workers_[rank];
    CollectiveSpan& ended = running_span(worker);
    ended.end = Time::picoseconds(now_);
    set_communication(worker, Communication::none);
    pump(worker, complete(worker, kCommunication) | 1u << kCommunication);
  }
  draining_ = false;
}

void Simulation::set_communication(Worker& worker, Communication state) {
  worker.communication = state;
  const LaneState& compute = worker.lanes[kCompute];
  if (!compute.busy || worker.unsettled || worker.program->tasks[compute.next].interference == 0) {
    return;
  }
  worker.unsettled = true;
  unsettled_.push_back(worker.index);
}

void Simulation::count_computing(int change) {
  const bool before = computing_ > 0;
  computing_ += static_cast<std::uint32_t>(change);
  if (before == (computing_ > 0)) return;
  transfer_unsettled_ = transferring_ != 0;
  if (exchange_) exchange_->touch();
}

Factor Simulation::compute_slowdown(const Worker& worker, const CompiledTask& task) const {
  const Interference& slowed = graph_.interference[task.interference];
  switch (worker.communication) {
    case Communication::none:
      return Factor{};
    case Communication::waiting:
      return slowed.waiting;
    case Communication::transferring:
      return in_part(slowed.transferring, working_share(worker));
  }
  return Factor{};
}

/// Of the collective that the worker's communication lane holds.
Factor Simulation::working_share(const Worker& worker) const {
  const std::uint32_t head = worker.lanes[kCommunication].next;
  return graph_.collectives[static_cast<std::size_t>(worker.program->tasks[head].collective)]
      .working;
}

void Simulation::settle() {
  // By index: re-timing adds no worker here.
  for (const std::uint32_t index : unsettled_) settle_compute(workers_[index]);
  unsettled_.clear();
  if (transfer_unsettled_) settle_transfer();
  if (exchange_unsettled()) exchange_->settle(now_, exchange_slowdown());
}

void Simulation::settle_compute(Worker& worker) {
  worker.unsettled = false;
  LaneState& state = worker.lanes[kCompute];
  const CompiledTask& task = worker.program->tasks[state.next];
  if (!state.busy || task.interference == 0) return;
  const Factor slowdown = compute_slowdown(worker, task);
  if (slowdown == worker.slowdown) return;
  state.end = state.start == now_ ? later(scaled(state.work, slowdown))
                                  : moved_end(now_, state.end, worker.slowdown, slowdown);
  worker.slowdown = slowdown;
  ++state.generation;
  queue_.push(state.end, EventKind::task_end, worker.index << 3 | kCompute, state.generation);
}

void Simulation::settle_transfer() {
  transfer_unsettled_ = false;
  if (transferring_ == 0) return;
  const std::size_t collective = (transferring_ - 1) % graph_.collectives.size();
  const Factor slowdown = transfer_slowdown(graph_.collectives[collective]);
  if (slowdown == transfer_applied_) return;
  Transfer& transfer = transfers_[transferring_ - 1];
  transfer.end = transfer.start == now_
                     ? later(scaled(transfer.work, slowdown))
                     : moved_end(now_, transfer.end, transfer_applied_, slowdown);
  transfer_applied_ = slowdown;
  ++transfer.generation;
  queue_.push(transfer.end, EventKind::transfer_end, transferring_ - 1, transfer.generation);
}

}  // namespace lockstep
