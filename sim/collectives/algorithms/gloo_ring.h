#pragma once

#include "sim/collectives/algorithms/message.h"
#include "sim/core/task_graph.h"

namespace lockstep {

/// All-reduce as Gloo does it (its allreduce.cc, ring): rank r sends to r - 1; parts are cut into
/// at least two segments of at most 1 MiB, one a step, and a step starts when the one before the
/// last is done.
class GlooRing {
 public:
  GlooRing(const Collective& collective, std::uint32_t ranks);

  std::uint32_t steps() const { return 2 * reducing_; }
  std::uint32_t reducing() const { return reducing_; }
  std::uint32_t needed(std::uint32_t step) const;
  std::uint32_t chunks() const { return chunks_; }
  Bytes chunk(std::uint32_t index) const;
  Message sent(std::uint32_t rank, std::uint32_t step) const;
  std::uint32_t source(std::uint32_t rank, std::uint32_t /*step*/) const {
    return rank + 1 == ranks_ ? 0 : rank + 1;
  }

 private:
  std::uint32_t ranks_;
  std::uint32_t chunks_ = 0;
  std::uint32_t reducing_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t segment_ = 0;
};

}  // namespace lockstep
