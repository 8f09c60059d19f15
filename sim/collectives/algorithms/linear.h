#pragma once

#include <vector>

#include "sim/collectives/algorithms/message.h"
#include "sim/collectives/algorithms/parts.h"

namespace lockstep {

/// Everything at once: one step in which the root sends to all (broadcast, scatter), all send to
/// the root (gather, reduce) or all send to all (all-gather, reduce-scatter, all-to-all). An
/// all-reduce takes two, to rank 0 and from it.
class Linear {
 public:
  Linear(const Collective& collective, std::uint32_t ranks);

  std::uint32_t steps() const;
  std::uint32_t reducing() const;
  std::uint32_t chunks() const;
  Bytes chunk(std::uint32_t index) const;
  void sends(std::uint32_t rank, std::uint32_t step, std::vector<Message>& out) const;
  void receives(std::uint32_t rank, std::uint32_t step, std::vector<Message>& out) const;

 private:
  bool between_all() const;
  bool from_root(std::uint32_t step) const;
  Message piece(std::uint32_t from, std::uint32_t to, std::uint32_t peer) const;

  CollectiveKind kind_;
  std::uint32_t ranks_, root_;
  Bytes bytes_;
  Parts parts_;
};

}  // namespace lockstep
