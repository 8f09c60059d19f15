#include "sim/collectives/steps.h"

#include <algorithm>

#include "sim/core/error.h"

namespace lockstep {

StepPlan::StepPlan(const Collective& collective, std::uint32_t ranks)
    : kind_(collective.kind),
      ranks_(ranks),
      bytes_(collective.bytes.count),
      element_(collective.step.element.count),
      segment_(collective.step.segment.count) {
  LOCKSTEP_ASSERT(ranks > 0 && element_ > 0, "a collective has ranks and elements");
  if (ranks == 1) return;
  if (kind_ == CollectiveKind::all_reduce) {
    chunks_ = ranks;
    steps_ = 2 * (ranks - 1);
    return;
  }
  if (segment_ == 0 || segment_ > bytes_) segment_ = std::max<std::int64_t>(bytes_, 1);
  segment_ = std::max(segment_ / element_, std::int64_t{1}) * element_;
  chunks_ =
      static_cast<std::uint32_t>(std::max<std::int64_t>((bytes_ + segment_ - 1) / segment_, 1));
  steps_ = ranks - 2 + chunks_;
}

Bytes StepPlan::chunk(std::uint32_t index) const {
  if (kind_ == CollectiveKind::broadcast) {
    return Bytes{std::min(segment_, bytes_ - segment_ * index)};
  }
  // The first elements % n chunks hold one element more; a broken last element counts as whole.
  const std::int64_t elements = (bytes_ + element_ - 1) / element_;
  const std::int64_t extra = elements % chunks_;
  return Bytes{(elements / chunks_ + (index < extra ? 1 : 0)) * element_};
}

Bytes StepPlan::sent(std::uint32_t rank, std::uint32_t step) const {
  if (kind_ == CollectiveKind::broadcast) {
    const bool sends = rank + 1 < ranks_ && step >= rank && step - rank < chunks_;
    return sends ? chunk(step - rank) : Bytes{};
  }
  // Reduce-scatter: rank r starts with chunk r. All-gather: it starts with chunk r + 1, which it
  // has just completed. Both then pass on what they received in the step before.
  const bool gathering = step >= ranks_ - 1;
  const std::uint32_t first = rank + (gathering ? 1 : 0);
  const std::uint32_t done = gathering ? step - (ranks_ - 1) : step;
  return chunk((first + ranks_ - done) % ranks_);
}

bool StepPlan::reduces(std::uint32_t step) const {
  return kind_ == CollectiveKind::all_reduce && step < ranks_ - 1;
}

bool StepPlan::even() const {
  return ranks_ == 1 || (kind_ == CollectiveKind::all_reduce && chunk(0) == chunk(chunks_ - 1));
}

}  // namespace lockstep
