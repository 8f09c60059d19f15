#include "sim/collectives/exchange.h"

#include <algorithm>

#include "sim/core/error.h"

namespace lockstep {
namespace {

constexpr std::int64_t kOne = std::int64_t{1} << 32;  // a Factor of one

/// Where ranks handle `rate` bytes a second by themselves, what they and a link of `link` let
/// through. Who waits for a core that computes feeds no link meanwhile: a byte takes its time on
/// whichever is the slower of the two, and then what waiting adds to it, slowdown - 1 times 1 /
/// rate.
Bandwidth slowed(Bandwidth rate, Bandwidth link, Factor slowdown) {
  if (rate == Bandwidth{} || slowdown == Factor{}) return rate;
  const std::int64_t alone = std::min(rate.bytes_per_second, link.bytes_per_second);
  const auto added = static_cast<std::int64_t>(slowdown.raw()) - kOne;
  const std::int64_t by = rate.bytes_per_second + multiply_divide(alone, added, kOne);
  return {std::max(multiply_divide(alone, rate.bytes_per_second, by), std::int64_t{1})};
}

}  // namespace

Exchange::Exchange(const TaskGraph& graph, const Network& network, EventQueue& queue,
                   std::vector<MessageSpan>* record)
    : graph_(graph), network_(network), queue_(queue), record_(record), sharing_(network.links()) {
  const auto ranks = static_cast<std::uint32_t>(graph.program_of_worker.size());
  ranks_.resize(ranks);
  for (const Collective& collective : graph.collectives) plans_.emplace_back(collective, ranks);
}

void Exchange::launch(std::uint32_t index, std::uint32_t collective, std::uint32_t /*iteration*/,
                      std::int64_t now) {
  Rank& rank = ranks_[index];
  rank.plan = &plans_[collective];
  rank.collective = collective;
  rank.next = rank.first = 0;
  rank.begun = false;
  enter_steps(index, now);
}

/// Enters steps as far as they may be open at once; passes over those without a message.
void Exchange::enter_steps(std::uint32_t index, std::int64_t now) {
  Rank& rank = ranks_[index];
  const StepPlan& plan = *rank.plan;
  while (rank.next < plan.steps() && rank.first >= plan.needed(rank.next)) {
    sends_.clear();
    receives_.clear();
    plan.sends(index, rank.next, sends_);
    plan.receives(index, rank.next, receives_);
    rank.missing[rank.next % kOpenSteps] =
        static_cast<std::uint32_t>(sends_.size() + receives_.size());
    for (const Message& message : sends_) send(index, message, now);
    for (const Message& message : receives_) await(index, message, now);
    ++rank.next;
    while (rank.first < rank.next && rank.missing[rank.first % kOpenSteps] == 0) ++rank.first;
  }
  if (rank.first < plan.steps()) return;
  rank.plan = nullptr;
  ended.push_back(index);
}

/// Made when a message first goes there.
std::uint32_t Exchange::way_between(std::uint32_t from, std::uint32_t to) {
  for (const auto& [peer, way] : ranks_[from].ways) {
    if (peer == to) return way;
  }
  const auto index = static_cast<std::uint32_t>(ways_.size());
  Way& way = ways_.emplace_back();
  way.from = from;
  way.to = to;
  way.route = network_.route(from, to);
  for (const std::uint32_t link : way.route.links) {
    way.slowest = std::min(way.slowest, network_.links()[link]);
  }
  ranks_[from].ways.emplace_back(to, index);
  return index;
}

void Exchange::send(std::uint32_t index, const Message& message, std::int64_t now) {
  const std::uint32_t to = way_between(index, message.peer);
  Way& way = ways_[to];
  Transit& sent = transit(way, way.sent);
  sent.bytes = message.bytes.count;
  sent.collective = ranks_[index].collective;
  sent.sent_in = ranks_[index].next;
  if (way.sent++ < way.awaited) match(to, way.sent - 1, now);
}

void Exchange::await(std::uint32_t index, const Message& message, std::int64_t now) {
  const std::uint32_t from = way_between(message.peer, index);
  Way& way = ways_[from];
  transit(way, way.awaited).received_in = ranks_[index].next;
  if (way.awaited++ < way.sent) match(from, way.awaited - 1, now);
}

/// Both ends are ready.
void Exchange::match(std::uint32_t index, std::uint32_t message, std::int64_t now) {
  Way& way = ways_[index];
  begin(way.from);
  begin(way.to);
  transit(way, message).ready = now;
  const StepCost& step = graph_.collectives[transit(way, message).collective].step;
  const Time latency = way.route.latency + step.latency;
  queue_.push(now + latency.ps(), EventKind::message_join, index, 0);
}

void Exchange::begin(std::uint32_t rank) {
  if (!ranks_[rank].begun) began.push_back(rank);
  ranks_[rank].begun = true;
}

void Exchange::handle(const Event& event) {
  switch (event.kind()) {
    case EventKind::message_join: {
      // Messages on one way join in their order: their latencies are the same.
      Way& way = ways_[event.target];
      if (way.joined++ == way.arrived) flow(event.target);
      return;
    }
    case EventKind::message_end:
      if (event.generation == ways_[event.target].generation) arrive(event.target, event.time);
      return;
    case EventKind::reduction_end:
      done(event.target, event.generation, event.time);
      return;
    case EventKind::task_end:
    case EventKind::transfer_end:
      break;
  }
  LOCKSTEP_ASSERT(false, "only messages come here");
}

/// The first message on the way that has not arrived takes its share of the links.
void Exchange::flow(std::uint32_t index) {
  Way& way = ways_[index];
  const StepCost& step = graph_.collectives[transit(way, way.arrived).collective].step;
  sharing_.add(index, way.route.links, slowed(step.rate, way.slowest, slowdown_));
  active_.insert(std::lower_bound(active_.begin(), active_.end(), index), index);
  way.rate = 0;
  ++flowing_;
  unsettled_ = true;
}

void Exchange::settle(std::int64_t now, Factor slowdown) {
  unsettled_ = false;
  if (slowdown != slowdown_) {
    slowdown_ = slowdown;
    for (const std::uint32_t index : active_) {
      Way& way = ways_[index];
      const StepCost& step = graph_.collectives[transit(way, way.arrived).collective].step;
      if (step.rate > Bandwidth{}) {
        sharing_.set_bound(index, slowed(step.rate, way.slowest, slowdown));
      }
    }
  }
  const std::vector<Rate>& rates = sharing_.rates();
  for (const std::uint32_t index : active_) {
    Way& way = ways_[index];
    const Rate rate = rates[index];
    if (rate == way.rate) continue;
    const std::int64_t left = way.rate == 0 ? flow_time(transit(way, way.arrived).bytes, rate)
                                            : multiply_divide(way.end - now, way.rate, rate);
    way.rate = rate;
    way.end = now + left;
    queue_.push(way.end, EventKind::message_end, index, ++way.generation);
  }
}

void Exchange::arrive(std::uint32_t index, std::int64_t now) {
  sharing_.remove(index);
  active_.erase(std::lower_bound(active_.begin(), active_.end(), index));
  --flowing_;
  unsettled_ = true;
  Way& way = ways_[index];
  ++way.generation;
  const Transit message = transit(way, way.arrived++);
  const std::uint32_t from = way.from, to = way.to;
  if (record_ != nullptr) {
    record_->push_back({message.collective, message.sent_in, from, to,
                        Time::picoseconds(message.ready), Time::picoseconds(now)});
  }
  if (way.joined > way.arrived) flow(index);

  const StepCost& step = graph_.collectives[message.collective].step;
  const bool adds =
      step.reduction > Bandwidth{} && plans_[message.collective].reduces(message.received_in);
  if (adds) {
    // A rank adds one message after the other.
    Rank& receiver = ranks_[to];
    receiver.adding_until = std::max(receiver.adding_until, now) +
                            transfer_time(Bytes{message.bytes}, step.reduction).ps();
    queue_.push(receiver.adding_until, EventKind::reduction_end, to, message.received_in);
  }
  done(from, message.sent_in, now);
  if (!adds) done(to, message.received_in, now);
}

/// One message less to wait for in this step of the rank.
void Exchange::done(std::uint32_t index, std::uint32_t step, std::int64_t now) {
  Rank& rank = ranks_[index];
  if (--rank.missing[step % kOpenSteps] > 0) return;
  while (rank.first < rank.next && rank.missing[rank.first % kOpenSteps] == 0) ++rank.first;
  enter_steps(index, now);
}

}  // namespace lockstep
