#pragma once

#include "sim/collectives/algorithms/fold.h"
#include "sim/collectives/algorithms/message.h"
#include "sim/collectives/algorithms/parts.h"

namespace lockstep {

/// Recursive doubling (Thakur, Rabenseifner & Gropp 2005): in step i members whose numbers differ
/// in bit i exchange all they have. All-reduce: the whole array each time; all-gather: twice as
/// much as in the step before.
class Doubling {
 public:
  Doubling(const Collective& collective, std::uint32_t ranks);

  std::uint32_t steps() const { return 2 * fold_.steps() + fold_.levels; }
  std::uint32_t reducing() const { return gathers_ ? 0 : fold_.steps() + fold_.levels; }
  std::uint32_t chunks() const { return parts_.count(); }
  Bytes chunk(std::uint32_t index) const { return parts_.bytes(index); }
  Message sent(std::uint32_t rank, std::uint32_t step) const;
  std::uint32_t source(std::uint32_t rank, std::uint32_t step) const;

 private:
  bool folding(std::uint32_t step) const { return step < fold_.steps(); }
  bool unfolding(std::uint32_t step) const { return step >= fold_.steps() + fold_.levels; }
  Message parts(std::uint32_t peer, std::uint32_t first, std::uint32_t count) const {
    return {peer, first, count, parts_.bytes(first, count)};
  }
  Fold fold_;
  bool gathers_;
  Parts parts_;
};

}  // namespace lockstep
