#include "sim/collectives/algorithms/doubling.h"

namespace lockstep {

Doubling::Doubling(const Collective& collective, std::uint32_t ranks)
    : fold_(ranks),
      gathers_(collective.kind == CollectiveKind::all_gather),
      parts_(whole_elements(collective), gathers_ ? ranks : 1, collective.step.element) {}

Message Doubling::sent(std::uint32_t rank, std::uint32_t step) const {
  const std::uint32_t peer = source(rank, step);
  const bool stands_by = fold_.stands_by(rank);
  if (folding(step)) {
    if (!stands_by) return {};
    return gathers_ ? parts(peer, rank, 1) : parts(peer, 0, 1);
  }
  if (unfolding(step)) {
    return fold_.in_pair(rank) && !stands_by ? parts(peer, 0, chunks()) : Message{};
  }
  if (stands_by) return {};
  if (!gathers_) return parts(peer, 0, 1);
  const std::uint32_t inner = step - fold_.steps();
  const std::uint32_t begin = fold_.member(rank) >> inner << inner;
  const std::uint32_t first = fold_.rank(begin);
  return parts(peer, first, fold_.rank(begin + (1U << inner)) - first);
}

std::uint32_t Doubling::source(std::uint32_t rank, std::uint32_t step) const {
  if (folding(step) || unfolding(step)) return fold_.in_pair(rank) ? rank ^ 1U : rank;
  return fold_.rank(fold_.member(rank) ^ (1U << (step - fold_.steps())));
}

}  // namespace lockstep
