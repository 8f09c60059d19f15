#include "sim/collectives/costs.h"

#include <algorithm>
#include <vector>

#include "sim/collectives/steps.h"
#include "sim/core/error.h"

namespace lockstep {
namespace {

/// Nothing to send is not sent.
Time message_time(Bytes bytes, const StepCost& step) {
  return bytes == Bytes{} ? Time() : step.latency + transfer_time(bytes, step.rate);
}

Time reduction_time(Bytes bytes, const StepCost& step) {
  return step.reduction > Bandwidth{} ? transfer_time(bytes, step.reduction) : Time();
}

/// Every step lasts as long as the largest chunk's message.
Time ring_time(const StepPlan& plan, const StepCost& step) {
  const Bytes chunk = plan.chunk(0);  // none is larger
  return message_time(chunk, step) * plan.steps() + reduction_time(chunk, step) * plan.reducing();
}

Time chain_time(const StepPlan& plan, const StepCost& step) {
  const std::int64_t messages = plan.steps();
  const auto hop = [&](std::uint32_t index) {
    const Bytes chunk = plan.chunk(index);
    return message_time(chunk, step) + (plan.reduces(0) ? reduction_time(chunk, step) : Time());
  };
  const Time last = hop(plan.chunks() - 1);
  if (plan.chunks() == 1) return last * messages;
  return hop(0) * (messages - 1) + last;
}

/// Segments of one size: one flows behind the other, and step i enters when step i - 2 is done.
Time gloo_ring_time(const StepPlan& plan, const StepCost& step) {
  const Bytes segment = plan.chunk(0);
  if (segment == Bytes{}) return Time();
  const Time flow = transfer_time(segment, step.rate);
  Time flowed, last, one_before;  // the last message's end; when steps i - 1 and i - 2 were done
  for (std::uint32_t i = 0; i < plan.steps(); ++i) {
    const Time entered = plan.needed(i) == i ? last : one_before;
    flowed = std::max(flowed, entered + step.latency) + flow;
    one_before = last;
    last = std::max(last, flowed);
    if (plan.reduces(i)) last += reduction_time(segment, step);
  }
  return last;
}

/// The largest message of each step.
Time stepwise_time(const StepPlan& plan, const StepCost& step, std::uint32_t ranks) {
  Time sum;
  std::vector<Message> messages;
  for (std::uint32_t s = 0; s < plan.steps(); ++s) {
    messages.clear();
    for (std::uint32_t rank = 0; rank < ranks; ++rank) plan.sends(rank, s, messages);
    Bytes largest;
    for (const Message& message : messages) largest = std::max(largest, message.bytes);
    sum += message_time(largest, step);
    if (plan.reduces(s)) sum += reduction_time(largest, step);
  }
  return sum;
}

/// Messages of a port flow side by side and end together; then they are added one by one.
Time linear_time(const StepPlan& plan, const StepCost& step, std::int64_t ranks) {
  const Bytes chunk = plan.chunk(0);
  if (chunk == Bytes{}) return Time();
  const Time together = step.latency + transfer_time({chunk.count * (ranks - 1)}, step.rate);
  return together * plan.steps() + reduction_time(chunk, step) * ((ranks - 1) * plan.reducing());
}

}  // namespace

Time formula_time(const Collective& collective, std::uint32_t ranks) {
  const StepCost& step = collective.step;
  LOCKSTEP_ASSERT(step.rate > Bandwidth{}, "the formula needs a bandwidth");
  if (ranks < 2) return Time();
  const StepPlan plan(collective, ranks);
  switch (collective.algorithm) {
    case Algorithm::ring:
      return collective.kind == CollectiveKind::broadcast ? chain_time(plan, step)
                                                          : ring_time(plan, step);
    case Algorithm::pairwise:
      return ring_time(plan, step);
    case Algorithm::chain:
      return chain_time(plan, step);
    case Algorithm::gloo_ring:
      return gloo_ring_time(plan, step);
    case Algorithm::recursive_doubling:
    case Algorithm::recursive_halving:
    case Algorithm::halving_doubling:
    case Algorithm::tree:
    case Algorithm::double_tree:
      return stepwise_time(plan, step, ranks);
    case Algorithm::hierarchical:
      return hierarchical_time(collective, ranks, step, step);
    case Algorithm::linear:
      break;
  }
  return linear_time(plan, step, ranks);
}

Time hierarchical_time(const Collective& collective, std::uint32_t ranks, const StepCost& inside,
                       const StepCost& between) {
  const Hierarchical way(collective, ranks);
  const auto both_ways = [](Bytes chunk, const StepCost& step) {
    return message_time(chunk, step) * 2 + reduction_time(chunk, step);
  };
  return both_ways(way.largest_inside(), inside) * way.inside() +
         both_ways(way.largest_between(), between) * way.between();
}

}  // namespace lockstep
