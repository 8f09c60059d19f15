#include "sim/collectives/costs.h"

#include "sim/collectives/steps.h"
#include "sim/core/error.h"

namespace lockstep {
namespace {

/// Nothing to send is not sent.
Time message_time(Bytes bytes, const StepCost& step) {
  return bytes == Bytes{} ? Time() : step.latency + transfer_time(bytes, step.rate);
}

}  // namespace

Time formula_time(const Collective& collective, std::uint32_t ranks) {
  const StepCost& step = collective.step;
  LOCKSTEP_ASSERT(step.rate > Bandwidth{}, "the formula needs a bandwidth");
  if (ranks < 2) return Time();
  const StepPlan plan(collective, ranks);
  if (collective.kind == CollectiveKind::all_reduce) {
    const Bytes chunk = plan.chunk(0);  // none is larger
    const Time reduction =
        step.reduction > Bandwidth{} ? transfer_time(chunk, step.reduction) : Time();
    return message_time(chunk, step) * (2 * (std::int64_t{ranks} - 1)) +
           reduction * (std::int64_t{ranks} - 1);
  }
  const std::int64_t messages = plan.steps();
  const Time last = message_time(plan.chunk(plan.chunks() - 1), step);
  if (plan.chunks() == 1) return last * messages;
  return message_time(plan.chunk(0), step) * (messages - 1) + last;
}

}  // namespace lockstep
