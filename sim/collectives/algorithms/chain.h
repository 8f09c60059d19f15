#pragma once

#include "sim/collectives/algorithms/message.h"
#include "sim/collectives/algorithms/parts.h"

namespace lockstep {

/// Broadcast from the root from rank to rank, or reduce the other way, in segments that follow one
/// another: n - 2 + k steps with k segments.
class Chain {
 public:
  Chain(const Collective& collective, std::uint32_t ranks);

  std::uint32_t steps() const { return places_.ranks() < 2 ? 0 : places_.ranks() - 2 + chunks_; }
  std::uint32_t reducing() const { return towards_root_ ? steps() : 0; }
  std::uint32_t chunks() const { return chunks_; }
  Bytes chunk(std::uint32_t index) const;
  Message sent(std::uint32_t rank, std::uint32_t step) const;
  std::uint32_t source(std::uint32_t rank, std::uint32_t step) const;

 private:
  Places places_;
  bool towards_root_;
  std::uint32_t chunks_ = 1;
  std::int64_t bytes_;
  std::int64_t segment_;
};

}  // namespace lockstep
