#include "sim/collectives/algorithms/halving.h"

namespace lockstep {

Halving::Halving(const Collective& collective, std::uint32_t ranks)
    : fold_(ranks),
      goes_back_(collective.kind == CollectiveKind::all_reduce),
      parts_(whole_elements(collective), goes_back_ ? 1 : ranks, collective.step.element) {}

Bytes Halving::chunk(std::uint32_t index) const {
  if (!goes_back_) return parts_.bytes(index);
  return fold_.levels == 0 ? parts_.bytes(0) : halved(index, fold_.levels - 1, true);
}

Message Halving::sent(std::uint32_t rank, std::uint32_t step) const {
  const std::uint32_t peer = source(rank, step);
  const bool stands_by = fold_.stands_by(rank);
  if (folding(step)) {
    return stands_by ? Message{peer, 0, chunks(), parts_.bytes(0, parts_.count())} : Message{};
  }
  if (unfolding(step)) {
    return fold_.in_pair(rank) && !stands_by ? unfolded(rank) : Message{};
  }
  if (stands_by) return {};
  return half(peer, fold_.member(rank), level(step), step >= reducing());
}

Message Halving::unfolded(std::uint32_t rank) const {
  const std::uint32_t peer = rank + 1;
  if (goes_back_) return {peer, 0, chunks(), parts_.bytes(0)};
  return {peer, peer, 1, parts_.bytes(peer)};
}

std::uint32_t Halving::source(std::uint32_t rank, std::uint32_t step) const {
  if (folding(step) || unfolding(step)) return fold_.in_pair(rank) ? rank ^ 1U : rank;
  return fold_.rank(fold_.member(rank) ^ (1U << (fold_.levels - 1 - level(step))));
}

/// Level 0 halves the whole; on the way back levels descend.
std::uint32_t Halving::level(std::uint32_t step) const {
  const std::uint32_t inner = step - fold_.steps();
  return inner < fold_.levels ? inner : 2 * fold_.levels - 1 - inner;
}

/// The half that a member keeps at a level of halving, or the one that it sends away. Members of
/// the lower half have a zero in the bit of the level.
Message Halving::half(std::uint32_t peer, std::uint32_t member, std::uint32_t level,
                      bool kept) const {
  const std::uint32_t left = fold_.levels - 1 - level;
  const std::uint32_t half_of = (kept ? member : member ^ (1U << left)) >> left;
  const std::uint32_t begin = half_of << left, end = (half_of + 1) << left;
  if (goes_back_) return {peer, begin, end - begin, halved(member, level, kept)};
  const std::uint32_t first = fold_.rank(begin), count = fold_.rank(end) - first;
  return {peer, first, count, parts_.bytes(first, count)};
}

/// Of an all-reduce, whose lower halves are the larger ones.
Bytes Halving::halved(std::uint32_t member, std::uint32_t level, bool kept) const {
  std::int64_t elements = parts_.elements(0);
  for (std::uint32_t l = 0;; ++l) {
    const bool upper = (member >> (fold_.levels - 1 - l) & 1U) != 0;
    const std::int64_t lower_half = (elements + 1) / 2;
    if (l == level) {
      return {(upper == kept ? elements - lower_half : lower_half) * parts_.element().count};
    }
    elements = upper ? elements - lower_half : lower_half;
  }
}

}  // namespace lockstep
