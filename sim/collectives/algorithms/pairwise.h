#pragma once

#include "sim/collectives/algorithms/message.h"
#include "sim/collectives/algorithms/parts.h"

namespace lockstep {

/// In step i = 1 .. n - 1 every rank sends what is for rank r + i straight there, and receives from
/// r - i (Thakur, Rabenseifner & Gropp 2005): all-to-all, or a reduce-scatter, which adds it.
class Pairwise {
 public:
  Pairwise(const Collective& collective, std::uint32_t ranks)
      : ranks_(ranks),
        adds_(collective.kind == CollectiveKind::reduce_scatter),
        parts_(whole_elements(collective), ranks, collective.step.element) {}

  std::uint32_t steps() const { return ranks_ - 1; }
  std::uint32_t reducing() const { return adds_ ? steps() : 0; }
  std::uint32_t chunks() const { return adds_ ? ranks_ : ranks_ * ranks_; }
  Bytes chunk(std::uint32_t index) const { return parts_.bytes(index % ranks_); }
  Message sent(std::uint32_t rank, std::uint32_t step) const {
    const std::uint32_t to = (rank + step + 1) % ranks_;
    return {to, adds_ ? to : rank * ranks_ + to, 1, parts_.bytes(to)};
  }
  std::uint32_t source(std::uint32_t rank, std::uint32_t step) const {
    return (rank + ranks_ - step - 1) % ranks_;
  }

 private:
  std::uint32_t ranks_;
  bool adds_;
  Parts parts_;
};

}  // namespace lockstep
