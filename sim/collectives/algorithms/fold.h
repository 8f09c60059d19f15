#pragma once

#include <bit>
#include <cstdint>

namespace lockstep {

/// Any number of ranks as a power of two of members (Thakur, Rabenseifner & Gropp 2005): the first
/// 2 x extra ranks make pairs, whose odd rank hands all it has to the even one before the first
/// step and gets its result back after the last.
struct Fold {
  std::uint32_t levels = 0;  ///< log2 of the members
  std::uint32_t extra = 0;   ///< pairs

  explicit Fold(std::uint32_t ranks)
      : levels(static_cast<std::uint32_t>(std::bit_width(ranks)) - 1),
        extra(ranks - (1U << levels)) {}
  std::uint32_t steps() const { return extra > 0 ? 1 : 0; }  ///< before, and as many after
  std::uint32_t member(std::uint32_t rank) const {
    return rank < 2 * extra ? rank / 2 : rank - extra;
  }
  /// The one that takes part, which is also the first that the member stands for.
  std::uint32_t rank(std::uint32_t member) const {
    return member < extra ? 2 * member : member + extra;
  }
  bool in_pair(std::uint32_t rank) const { return rank < 2 * extra; }
  bool stands_by(std::uint32_t rank) const { return in_pair(rank) && rank % 2 == 1; }
};

}  // namespace lockstep
