#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/task_graph.h"
#include "sim/core/time.h"
#include "sim/core/units.h"

namespace lockstep {

/// Whether a collective can run step by step in this way.
bool can_run(CollectiveKind kind, Algorithm algorithm);

/// One end of a message: the rank at the other end, and how much it is.
struct Message {
  std::uint32_t peer = 0;
  Bytes bytes;
};

/// The messages of one collective among `ranks` ranks, step by step. Nothing to send is no message.
///
/// ring: rank r sends to r + 1. An all-reduce is a reduce-scatter followed by an all-gather: n - 1
/// steps each, one of n chunks a step (Patarasuk & Yuan 2009). A broadcast goes from rank 0 down
/// the chain, in segments that follow one another.
/// gloo_ring (Gloo's allreduce.cc, ring): rank r sends to r - 1; chunks are cut into at least two
/// segments of at most 1 MiB, one a step, and a step starts when the one before the last is done.
/// recursive_doubling, halving_doubling (Thakur, Rabenseifner & Gropp 2005): where n is no power of
/// two, the first ranks fold in pairs before, and unfold after.
/// tree: binomial, rank 0 on top; an all-reduce goes up, added on the way, then down.
/// root: everything to or from rank 0 in one step.
class StepPlan {
 public:
  /// can_run() must hold.
  StepPlan(const Collective& collective, std::uint32_t ranks);

  std::uint32_t steps() const { return steps_; }
  /// Appends what `rank` sends, or receives, in `step`.
  void sends(std::uint32_t rank, std::uint32_t step, std::vector<Message>& out) const;
  void receives(std::uint32_t rank, std::uint32_t step, std::vector<Message>& out) const;
  /// What is received in `step` is added to what is there.
  bool reduces(std::uint32_t step) const;
  /// A rank enters `step` when all its steps below this one are done.
  std::uint32_t needed(std::uint32_t step) const;

  /// Pieces that the array is cut into; the first is the largest.
  std::uint32_t chunks() const { return chunks_; }
  Bytes chunk(std::uint32_t index) const;
  /// Every rank of a ring sends as much as every other in every step.
  bool even() const;

 private:
  Message sent(std::uint32_t rank, std::uint32_t step) const;
  std::uint32_t source(std::uint32_t rank, std::uint32_t step) const;
  Message ring(std::uint32_t rank, std::uint32_t step) const;
  Message gloo_ring(std::uint32_t rank, std::uint32_t step) const;
  Message chain(std::uint32_t rank, std::uint32_t step) const;
  Message tree(std::uint32_t rank, std::uint32_t step) const;
  Message folded(std::uint32_t rank, std::uint32_t step) const;
  Bytes halved(std::uint32_t member, std::uint32_t level, bool kept) const;
  bool folding(std::uint32_t step) const { return extra_ > 0 && step == 0; }
  bool unfolding(std::uint32_t step) const { return extra_ > 0 && step + 1 == steps_; }
  std::uint32_t partner(std::uint32_t rank, std::uint32_t step) const;
  void cut_into_segments();

  CollectiveKind kind_;
  Algorithm algorithm_;
  std::uint32_t ranks_;
  std::uint32_t steps_ = 0;
  std::uint32_t reducing_ = 0;  ///< the first steps, in which what arrives is added
  std::uint32_t chunks_ = 0;
  std::uint32_t levels_ = 0;  ///< log2 of the ranks: rounded up in a tree, else down
  std::uint32_t extra_ = 0;   ///< ranks beyond a power of two
  std::int64_t bytes_ = 0;
  std::int64_t element_ = 1;
  std::int64_t segment_ = 0;
  std::int64_t least_ = 0, larger_ = 0;  ///< elements of a ring's chunk; chunks with one more
};

}  // namespace lockstep
