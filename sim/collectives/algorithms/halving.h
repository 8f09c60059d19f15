#pragma once

#include "sim/collectives/algorithms/fold.h"
#include "sim/collectives/algorithms/message.h"
#include "sim/collectives/algorithms/parts.h"

namespace lockstep {

/// Recursive halving (Thakur, Rabenseifner & Gropp 2005): members exchange halves of what is left
/// to them, whose sums they keep, with partners first far, then near. A reduce-scatter; an
/// all-reduce then goes the same way back (Rabenseifner's halving-doubling). Chunks are what each
/// member is left with in an all-reduce, and what each rank is to have in a reduce-scatter.
class Halving {
 public:
  Halving(const Collective& collective, std::uint32_t ranks);

  std::uint32_t steps() const { return 2 * fold_.steps() + fold_.levels * (goes_back_ ? 2 : 1); }
  std::uint32_t reducing() const { return fold_.steps() + fold_.levels; }
  std::uint32_t chunks() const { return goes_back_ ? 1U << fold_.levels : parts_.count(); }
  Bytes chunk(std::uint32_t index) const;
  Message sent(std::uint32_t rank, std::uint32_t step) const;
  std::uint32_t source(std::uint32_t rank, std::uint32_t step) const;

 private:
  bool folding(std::uint32_t step) const { return step < fold_.steps(); }
  bool unfolding(std::uint32_t step) const { return step >= steps() - fold_.steps(); }
  std::uint32_t level(std::uint32_t step) const;
  Bytes halved(std::uint32_t member, std::uint32_t level, bool kept) const;
  Message half(std::uint32_t peer, std::uint32_t member, std::uint32_t level, bool kept) const;
  Message unfolded(std::uint32_t rank) const;

  Fold fold_;
  bool goes_back_;
  Parts parts_;
};

}  // namespace lockstep
