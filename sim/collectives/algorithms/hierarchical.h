#pragma once

#include <array>

#include "sim/collectives/algorithms/message.h"
#include "sim/collectives/algorithms/ring.h"
#include "sim/collectives/algorithms/tree.h"

namespace lockstep {

/// All-reduce in hosts of g ranks, filled one after another, as Horovod does it (NCCL within and
/// MPI between hosts): a ring's reduce-scatter in every host, an all-reduce of each of the g parts
/// among those that hold it, one a host, again along a ring, and a ring's all-gather in every
/// host. Where the last host is not full: a tree to the first rank of each host, the ring between
/// these, and the tree back.
class Hierarchical {
 public:
  Hierarchical(const Collective& collective, std::uint32_t ranks);

  std::uint32_t steps() const { return 2 * (inside_ + between_); }
  std::uint32_t reducing() const { return inside_ + between_; }
  std::uint32_t chunks() const { return parts_ * hosts_; }
  Bytes chunk(std::uint32_t index) const { return ring(index / hosts_).chunk(index % hosts_); }
  Message sent(std::uint32_t rank, std::uint32_t step) const;
  std::uint32_t source(std::uint32_t rank, std::uint32_t step) const;

  /// Steps in the hosts on either side, and of each half between them.
  std::uint32_t inside() const { return inside_; }
  std::uint32_t between() const { return between_; }
  /// The largest message within a host, and between two.
  Bytes largest_inside() const;
  Bytes largest_between() const { return ring(0).chunk(0); }

 private:
  bool is_between(std::uint32_t step) const {
    return step >= inside_ && step < inside_ + 2 * between_;
  }
  /// A step in a host as one of its ring's or tree's all-reduce.
  std::uint32_t inner(std::uint32_t step) const {
    return step < inside_ ? step : step - 2 * between_;
  }
  /// The part that a rank reduces with its like on other hosts.
  std::uint32_t held(std::uint32_t local) const { return parts_ == 1 ? 0 : (local + 1) % parts_; }
  /// Between hosts, for one of the parts.
  const Ring& ring(std::uint32_t part) const { return rings_[part < larger_ ? 0 : 1]; }
  const Tree& tree(std::uint32_t host) const { return trees_[host + 1 < hosts_ ? 0 : 1]; }

  std::uint32_t per_host_, hosts_;
  bool full_;            ///< every host is
  std::uint32_t parts_;  ///< of the array in a host: one if not all are full
  std::uint32_t inside_, between_;
  Ring in_host_;
  std::array<Tree, 2> trees_;  ///< of a full host, and of the last
  std::uint32_t larger_;       ///< parts with one element more
  std::array<Ring, 2> rings_;  ///< of a larger part, and of another
};

}  // namespace lockstep
