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

Time ring_time(const StepPlan& plan, const StepCost& step, std::int64_t ranks) {
  const Bytes chunk = plan.chunk(0);  // none is larger
  return message_time(chunk, step) * (2 * (ranks - 1)) + reduction_time(chunk, step) * (ranks - 1);
}

Time chain_time(const StepPlan& plan, const StepCost& step) {
  const std::int64_t messages = plan.steps();
  const Time last = message_time(plan.chunk(plan.chunks() - 1), step);
  if (plan.chunks() == 1) return last * messages;
  return message_time(plan.chunk(0), step) * (messages - 1) + last;
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

Time root_time(const Collective& collective, std::int64_t ranks) {
  const StepCost& step = collective.step;
  if (collective.bytes == Bytes{}) return Time();
  const Time time =
      step.latency + transfer_time(Bytes{collective.bytes.count * (ranks - 1)}, step.rate);
  // Arrivals end together and are added one after the other.
  const bool adds = collective.kind == CollectiveKind::reduce;
  return adds ? time + reduction_time(collective.bytes, step) * (ranks - 1) : time;
}

}  // namespace

Time formula_time(const Collective& collective, std::uint32_t ranks) {
  const StepCost& step = collective.step;
  LOCKSTEP_ASSERT(step.rate > Bandwidth{}, "the formula needs a bandwidth");
  if (ranks < 2) return Time();
  const StepPlan plan(collective, ranks);
  switch (collective.algorithm) {
    case Algorithm::ring:
      return collective.kind == CollectiveKind::all_reduce ? ring_time(plan, step, ranks)
                                                           : chain_time(plan, step);
    case Algorithm::gloo_ring:
      return gloo_ring_time(plan, step);
    case Algorithm::recursive_doubling:
    case Algorithm::halving_doubling:
    case Algorithm::tree:
      return stepwise_time(plan, step, ranks);
    case Algorithm::root:
      break;
  }
  return root_time(collective, ranks);
}

}  // namespace lockstep
