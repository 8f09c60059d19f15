#pragma once

#include "sim/collectives/algorithms/message.h"
#include "sim/collectives/algorithms/parts.h"

namespace lockstep {

/// Binomial tree, the root on top: ceil(log2 n) steps down (broadcast, scatter) or up (reduce,
/// gather); an all-reduce goes up to rank 0, then down. A gather's and a scatter's messages hold
/// the arrays of all ranks below.
class Tree {
 public:
  Tree(const Collective& collective, std::uint32_t ranks)
      : Tree(collective.kind, collective.bytes, {ranks, collective.root}, levels_of(ranks)) {}
  /// With more levels than these ranks need, for those who wait for a larger tree.
  Tree(CollectiveKind kind, Bytes bytes, Places places, std::uint32_t levels);
  static std::uint32_t levels_of(std::uint32_t ranks);

  std::uint32_t steps() const { return steps_; }
  std::uint32_t reducing() const { return adds_ ? up_ : 0; }
  std::uint32_t chunks() const { return apart_ ? places_.ranks() : 1; }
  Bytes chunk(std::uint32_t /*index*/) const { return bytes_; }
  Message sent(std::uint32_t rank, std::uint32_t step) const;
  std::uint32_t source(std::uint32_t rank, std::uint32_t step) const;

 private:
  /// Between the places of a pair.
  std::uint32_t distance(std::uint32_t step) const {
    return 1U << (step < up_ ? step : steps_ - 1 - step);
  }
  Places places_;
  bool adds_;
  bool apart_;  ///< every rank's array keeps its own place
  std::uint32_t up_, steps_;
  Bytes bytes_;
};

}  // namespace lockstep
