#include "sim/collectives/exchange.h"

#include "sim/core/error.h"

namespace lockstep {

Exchange::Exchange(const TaskGraph& graph, const Network& network, EventQueue& queue)
    : graph_(graph), queue_(queue), sharing_(network.links()) {
  const auto ranks = static_cast<std::uint32_t>(graph.program_of_worker.size());
  ranks_.resize(ranks);
  flows_.resize(ranks);
  for (const Collective& collective : graph.collectives) plans_.emplace_back(collective, ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (ranks > 1) flows_[rank].route = network.route(rank, right(rank));
  }
}

std::uint32_t Exchange::right(std::uint32_t rank) const {
  return rank + 1 == ranks_.size() ? 0 : rank + 1;
}

std::uint32_t Exchange::left(std::uint32_t rank) const {
  return rank == 0 ? static_cast<std::uint32_t>(ranks_.size() - 1) : rank - 1;
}

void Exchange::launch(std::uint32_t rank, std::uint32_t collective, std::uint32_t iteration,
                      std::int64_t now) {
  ranks_[rank] = {&plans_[collective], collective, iteration, 0, false, false, false, false};
  enter_step(rank, now);
}

/// Starts the messages of the step; passes over steps in which the rank has none.
void Exchange::enter_step(std::uint32_t index, std::int64_t now) {
  Rank& rank = ranks_[index];
  for (; rank.step < rank.plan->steps(); ++rank.step) {
    rank.sent = rank.plan->sent(index, rank.step) == Bytes{};
    rank.received = rank.plan->sent(left(index), rank.step) == Bytes{};
    rank.sending = false;
    if (rank.sent && rank.received) continue;
    try_message(index, now);
    try_message(left(index), now);
    return;
  }
  rank.plan = nullptr;
  ended.push_back(index);
}

/// A message starts when sender and receiver are in the same step of the same collective.
void Exchange::try_message(std::uint32_t sender, std::int64_t now) {
  Rank& from = ranks_[sender];
  const Rank& to = ranks_[right(sender)];
  const bool met = from.plan != nullptr && from.plan == to.plan && from.iteration == to.iteration &&
                   from.step == to.step;
  if (!met || from.sent || from.sending) return;
  from.sending = true;
  begin(sender);
  begin(right(sender));
  Flow& flow = flows_[sender];
  flow.bytes = from.plan->sent(sender, from.step).count;
  const Time latency = flow.route.latency + graph_.collectives[from.collective].step.latency;
  queue_.push(now + latency.ps(), EventKind::message_join, sender, flow.generation);
}

void Exchange::begin(std::uint32_t rank) {
  if (!ranks_[rank].begun) began.push_back(rank);
  ranks_[rank].begun = true;
}

void Exchange::handle(const Event& event) {
  switch (event.kind()) {
    case EventKind::message_join:
      join(event.target);
      return;
    case EventKind::message_end:
      if (event.generation == flows_[event.target].generation) arrive(event.target, event.time);
      return;
    case EventKind::reduction_end:
      ranks_[event.target].received = true;
      advance(event.target, event.time);
      return;
    case EventKind::task_end:
    case EventKind::transfer_end:
      break;
  }
  LOCKSTEP_ASSERT(false, "only messages come here");
}

void Exchange::join(std::uint32_t sender) {
  const Rank& rank = ranks_[sender];
  sharing_.add(sender, flows_[sender].route.links, graph_.collectives[rank.collective].step.rate);
  flows_[sender].rate = 0;
  ++flowing_;
  unsettled_ = true;
}

void Exchange::settle(std::int64_t now, Factor slowdown) {
  unsettled_ = false;
  const std::vector<Rate>& rates = sharing_.rates();
  for (std::uint32_t sender = 0; sender < rates.size(); ++sender) {
    if (rates[sender] == 0) continue;
    constexpr std::int64_t kOne = std::int64_t{1} << 32;
    const Rate rate =
        multiply_divide(rates[sender], kOne, static_cast<std::int64_t>(slowdown.raw()));
    Flow& flow = flows_[sender];
    if (rate == flow.rate) continue;
    const std::int64_t left = flow.rate == 0 ? flow_time(flow.bytes, rate)
                                             : multiply_divide(flow.end - now, flow.rate, rate);
    flow.rate = rate;
    flow.end = now + left;
    queue_.push(flow.end, EventKind::message_end, sender, ++flow.generation);
  }
}

void Exchange::arrive(std::uint32_t sender, std::int64_t now) {
  sharing_.remove(sender);
  --flowing_;
  unsettled_ = true;
  Flow& flow = flows_[sender];
  ++flow.generation;
  Rank& from = ranks_[sender];
  const std::uint32_t receiver = right(sender);
  const Collective& collective = graph_.collectives[from.collective];
  const bool reduces = from.plan->reduces(from.step) && collective.step.reduction > Bandwidth{};
  from.sent = true;
  if (reduces) {
    const Time time = transfer_time(Bytes{flow.bytes}, collective.step.reduction);
    queue_.push(now + time.ps(), EventKind::reduction_end, receiver, 0);
  } else {
    ranks_[receiver].received = true;
  }
  advance(sender, now);
  if (!reduces) advance(receiver, now);
}

/// To the next step, when all of this one has been sent and received.
void Exchange::advance(std::uint32_t index, std::int64_t now) {
  Rank& rank = ranks_[index];
  if (rank.plan == nullptr || !rank.sent || !rank.received) return;
  ++rank.step;
  enter_step(index, now);
}

}  // namespace lockstep
