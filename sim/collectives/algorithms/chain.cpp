#include "sim/collectives/algorithms/chain.h"

#include <algorithm>

namespace lockstep {

Chain::Chain(const Collective& collective, std::uint32_t ranks)
    : places_(ranks, collective.root),
      towards_root_(collective.kind == CollectiveKind::reduce),
      bytes_(collective.bytes.count),
      segment_(collective.step.segment.count) {
  const std::int64_t element = collective.step.element.count;
  if (segment_ == 0 || segment_ > bytes_) segment_ = std::max<std::int64_t>(bytes_, 1);
  segment_ = std::max(segment_ / element, std::int64_t{1}) * element;
  const std::int64_t count = (bytes_ + segment_ - 1) / segment_;
  chunks_ = static_cast<std::uint32_t>(std::max<std::int64_t>(count, 1));
}

Bytes Chain::chunk(std::uint32_t index) const {
  return {std::clamp(bytes_ - segment_ * index, std::int64_t{0}, segment_)};
}

Message Chain::sent(std::uint32_t rank, std::uint32_t step) const {
  const std::uint32_t place = places_.place(rank), last = places_.ranks() - 1;
  // Whoever sends first does so in step 0.
  const std::uint32_t start = towards_root_ ? last - place : place;
  const bool at_end = place == (towards_root_ ? 0 : last);
  if (at_end || step < start || step - start >= chunks_) return {};
  const std::uint32_t index = step - start;
  return {places_.rank(towards_root_ ? place - 1 : place + 1), index, 1, chunk(index)};
}

std::uint32_t Chain::source(std::uint32_t rank, std::uint32_t /*step*/) const {
  const std::uint32_t ranks = places_.ranks();
  if (towards_root_) return rank + 1 == ranks ? 0 : rank + 1;
  return rank == 0 ? ranks - 1 : rank - 1;
}

}  // namespace lockstep
