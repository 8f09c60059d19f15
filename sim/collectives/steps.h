#pragma once

#include <cstdint>

#include "sim/core/task_graph.h"
#include "sim/core/time.h"
#include "sim/core/units.h"

namespace lockstep {

/// The messages of one collective along a ring of `ranks` ranks, rank r sending to r + 1. An
/// all-reduce is a ring reduce-scatter followed by a ring all-gather: n - 1 steps each, one of n
/// chunks a step (Patarasuk & Yuan 2009). A broadcast goes from rank 0 down the chain, in segments
/// that follow one another.
class StepPlan {
 public:
  StepPlan(const Collective& collective, std::uint32_t ranks);

  std::uint32_t steps() const { return steps_; }
  /// Pieces that the array is cut into; the first is the largest.
  std::uint32_t chunks() const { return chunks_; }
  /// What `rank` sends to its right neighbour in `step`; zero: nothing.
  Bytes sent(std::uint32_t rank, std::uint32_t step) const;
  /// What is received in `step` is added to what is there.
  bool reduces(std::uint32_t step) const;
  /// Every rank sends as much as every other in every step.
  bool even() const;
  Bytes chunk(std::uint32_t index) const;

 private:
  CollectiveKind kind_;
  std::uint32_t ranks_;
  std::uint32_t steps_ = 0;
  std::uint32_t chunks_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t element_ = 1;
  std::int64_t segment_ = 0;
};

}  // namespace lockstep
