#pragma once

#include <array>
#include <vector>

#include "sim/collectives/algorithms/message.h"
#include "sim/collectives/algorithms/parts.h"

namespace lockstep {

/// Two binary trees below the root (Sanders, Speck & Träff 2009): who has children in one is a leaf
/// of the other. Every second segment goes down each tree, and the edges have two colours, so that
/// in a step, which has the colour of its parity, a rank receives at most one message and sends at
/// most one: all links are busy. A reduce is the same backwards; an all-reduce goes up to rank 0,
/// then down.
class DoubleTree {
 public:
  DoubleTree(const Collective& collective, std::uint32_t ranks);

  std::uint32_t steps() const { return (goes_up_ ? one_way_ : 0) + (goes_down_ ? one_way_ : 0); }
  std::uint32_t reducing() const { return goes_up_ ? one_way_ : 0; }
  std::uint32_t chunks() const { return parts_.count(); }
  Bytes chunk(std::uint32_t index) const { return parts_.bytes(index); }
  Message sent(std::uint32_t rank, std::uint32_t step) const;
  std::uint32_t source(std::uint32_t rank, std::uint32_t step) const;

 private:
  static constexpr std::uint32_t kNobody = 0xffffffff;
  /// From a parent down to a place.
  struct Edge {
    std::uint32_t parent = kNobody;
    std::uint32_t tree = 0;
    std::uint32_t first = 0;  ///< step of the tree's first segment, downwards
  };
  /// By colour; the root has no edge into it.
  struct Node {
    std::array<Edge, 2> into;
    std::array<std::uint32_t, 2> child{kNobody, kNobody};
  };
  void join(const std::vector<std::uint32_t>& parents, const std::vector<std::uint8_t>& colours);
  bool is_up(std::uint32_t step) const { return goes_up_ && step < one_way_; }
  /// The step as one of a broadcast, in which an edge carries the same segment.
  std::uint32_t downward(std::uint32_t step) const {
    if (is_up(step)) return one_way_ - 1 - step;
    return goes_up_ ? step - one_way_ : step;
  }
  Message along(std::uint32_t child, std::uint32_t step, std::uint32_t receiver) const;

  Places places_;
  bool goes_up_, goes_down_;
  Parts parts_;
  std::uint32_t one_way_ = 0;  ///< steps
  std::vector<Node> nodes_;    ///< by place
};

}  // namespace lockstep
