#include "sim/collectives/algorithms/ring.h"

namespace lockstep {

Ring::Ring(CollectiveKind kind, std::int64_t elements, Bytes element, std::uint32_t ranks)
    : parts_(elements, ranks, element) {
  if (kind != CollectiveKind::all_gather) reducing_ = ranks - 1;
  if (kind != CollectiveKind::reduce_scatter) gathering_ = ranks - 1;
  // Reducing from its own part on, a rank completes the one behind it, and gathers from there. A
  // reduce-scatter is to leave it with its own.
  if (kind == CollectiveKind::all_reduce) first_gathered_ = 1;
  if (kind == CollectiveKind::reduce_scatter) first_reduced_ = ranks - 1;
}

Message Ring::sent(std::uint32_t rank, std::uint32_t step) const {
  // In each half a rank passes on what it received in the step before.
  const std::uint32_t ranks = parts_.count();
  const bool gathering = step >= reducing_;
  const std::uint32_t first = rank + (gathering ? first_gathered_ : first_reduced_);
  const std::uint32_t done = gathering ? step - reducing_ : step;
  const std::uint32_t index = first + ranks - done;
  const std::uint32_t part = index < ranks ? index : index % ranks;
  return {rank + 1 == ranks ? 0 : rank + 1, part, 1, parts_.bytes(part)};
}

}  // namespace lockstep
