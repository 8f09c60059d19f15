#include "sim/collectives/algorithms/gloo_ring.h"

#include <algorithm>

#include "sim/collectives/algorithms/parts.h"

namespace lockstep {

GlooRing::GlooRing(const Collective& collective, std::uint32_t ranks) : ranks_(ranks) {
  constexpr std::int64_t kMostSegment = 1 << 20;
  const std::int64_t element = collective.step.element.count;
  const std::int64_t elements = whole_elements(collective);
  bytes_ = elements * element;
  const std::int64_t most = std::max(kMostSegment / element, std::int64_t{1}) * element;
  const std::int64_t wanted = std::max((bytes_ + most - 1) / most, std::int64_t{2} * ranks);
  const std::int64_t a_rank = (wanted + ranks - 1) / ranks;
  chunks_ = static_cast<std::uint32_t>(a_rank * ranks);
  segment_ = std::max((elements + chunks_ - 1) / chunks_, std::int64_t{1}) * element;
  reducing_ = chunks_ - chunks_ / ranks;
}

std::uint32_t GlooRing::needed(std::uint32_t step) const {
  // Two steps may be under way, but reducing ends before gathering begins.
  const std::uint32_t before = step == 0 ? 0 : step - 1;
  return step >= reducing_ ? std::max(before, reducing_) : before;
}

Bytes GlooRing::chunk(std::uint32_t index) const {
  return {std::clamp(bytes_ - segment_ * index, std::int64_t{0}, segment_)};
}

Message GlooRing::sent(std::uint32_t rank, std::uint32_t step) const {
  // Reducing begins with the part of r + 1, gathering with the rank's own.
  const bool gathering = step >= reducing_;
  const std::uint32_t a_rank = chunks_ / ranks_;
  const std::uint32_t first = (rank + (gathering ? 0 : 1)) * a_rank;
  const std::uint32_t done = gathering ? step - reducing_ : step;
  const std::uint32_t index = (first + done) % chunks_;
  return {rank == 0 ? ranks_ - 1 : rank - 1, index, 1, chunk(index)};
}

}  // namespace lockstep
