#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "sim/collectives/algorithms/chain.h"
#include "sim/collectives/algorithms/double_tree.h"
#include "sim/collectives/algorithms/doubling.h"
#include "sim/collectives/algorithms/gloo_ring.h"
#include "sim/collectives/algorithms/halving.h"
#include "sim/collectives/algorithms/hierarchical.h"
#include "sim/collectives/algorithms/linear.h"
#include "sim/collectives/algorithms/message.h"
#include "sim/collectives/algorithms/pairwise.h"
#include "sim/collectives/algorithms/ring.h"
#include "sim/collectives/algorithms/tree.h"
#include "sim/core/task_graph.h"
#include "sim/core/units.h"

namespace lockstep {

/// The messages of one collective among `ranks` ranks, step by step: who sends which chunks to
/// whom, and whether they are added. Told for one rank and step without going through the others.
/// Nothing to send is no message. The one description of every algorithm
/// (sim/collectives/algorithms, one file each): the engine's messages, formulas and schedules all
/// come from it.
class StepPlan {
 public:
  /// can_run() of algorithms.h must hold, and the root be one of the ranks.
  StepPlan(const Collective& collective, std::uint32_t ranks);

  std::uint32_t steps() const { return steps_; }
  /// Appends what `rank` sends, or receives, in `step`: at most one message to any rank.
  void sends(std::uint32_t rank, std::uint32_t step, std::vector<Message>& out) const;
  void receives(std::uint32_t rank, std::uint32_t step, std::vector<Message>& out) const;
  /// What is received in `step` is added to what is there.
  bool reduces(std::uint32_t step) const { return step < reducing_; }
  /// So many: the first ones.
  std::uint32_t reducing() const { return reducing_; }
  /// A rank enters `step` when all its steps below this one are done.
  std::uint32_t needed(std::uint32_t step) const;

  /// Pieces that the array is cut into. Of a gather and a scatter these are the arrays of all
  /// ranks, of an all-to-all what rank i has for rank j, number i x ranks + j.
  std::uint32_t chunks() const;
  Bytes chunk(std::uint32_t index) const;
  /// Every rank of a ring sends as much as every other in every step.
  bool even() const;

 private:
  using Way = std::variant<Ring, GlooRing, Chain, Tree, Doubling, Halving, Linear, Pairwise,
                           Hierarchical, DoubleTree>;
  static Way way_of(const Collective& collective, std::uint32_t ranks);

  Way way_;
  std::uint32_t ranks_;
  std::uint32_t steps_ = 0;
  std::uint32_t reducing_ = 0;
};

}  // namespace lockstep
