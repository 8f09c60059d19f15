#pragma once

#include "sim/collectives/algorithms/message.h"
#include "sim/collectives/algorithms/parts.h"

namespace lockstep {

/// Rank r sends to r + 1, one of n parts a step: reduce-scatter, all-gather, n - 1 steps each, and
/// all-reduce, which is both one after the other (Patarasuk & Yuan 2009).
class Ring {
 public:
  Ring(const Collective& collective, std::uint32_t ranks)
      : Ring(collective.kind, whole_elements(collective), collective.step.element, ranks) {}
  Ring(CollectiveKind kind, std::int64_t elements, Bytes element, std::uint32_t ranks);

  std::uint32_t steps() const { return reducing_ + gathering_; }
  std::uint32_t reducing() const { return reducing_; }
  std::uint32_t chunks() const { return parts_.count(); }
  Bytes chunk(std::uint32_t index) const { return parts_.bytes(index); }
  const Parts& parts() const { return parts_; }
  Message sent(std::uint32_t rank, std::uint32_t step) const;
  std::uint32_t source(std::uint32_t rank, std::uint32_t /*step*/) const {
    return rank == 0 ? chunks() - 1 : rank - 1;
  }

 private:
  Parts parts_;
  std::uint32_t reducing_ = 0, gathering_ = 0;  ///< steps
  /// Which part a rank begins with in each half: its own number and this.
  std::uint32_t first_reduced_ = 0, first_gathered_ = 0;
};

}  // namespace lockstep
