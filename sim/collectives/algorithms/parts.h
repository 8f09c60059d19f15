#pragma once

#include <cstdint>

#include "sim/core/task_graph.h"
#include "sim/core/units.h"

namespace lockstep {

/// A broken last element counts as whole.
inline std::int64_t whole_elements(const Collective& collective) {
  const std::int64_t element = collective.step.element.count;
  return (collective.bytes.count + element - 1) / element;
}

/// Elements in parts as even as they can be: the first `elements % count` hold one more.
class Parts {
 public:
  Parts(std::int64_t elements, std::uint32_t count, Bytes element)
      : count_(count),
        least_(elements / count),
        larger_(elements % count),
        element_(element.count) {}

  std::uint32_t count() const { return count_; }
  Bytes element() const { return {element_}; }
  std::int64_t elements(std::uint32_t part) const { return least_ + (part < larger_ ? 1 : 0); }
  Bytes bytes(std::uint32_t part) const { return {elements(part) * element_}; }
  /// Of `parts` of them from `first` on, behind the last one the first again.
  Bytes bytes(std::uint32_t first, std::uint32_t parts) const {
    const std::uint32_t end = first + parts;
    const std::int64_t held = end <= count_ ? below(end) - below(first)
                                            : below(count_) - below(first) + below(end - count_);
    return {held * element_};
  }

 private:
  std::int64_t below(std::uint32_t part) const {
    return least_ * part + (part < larger_ ? part : larger_);
  }
  std::uint32_t count_;
  std::int64_t least_, larger_, element_;
};

/// Ranks as seen from a root, which has place 0.
class Places {
 public:
  Places(std::uint32_t ranks, std::uint32_t root) : ranks_(ranks), root_(root) {}
  std::uint32_t ranks() const { return ranks_; }
  std::uint32_t place(std::uint32_t rank) const {
    return rank >= root_ ? rank - root_ : rank + ranks_ - root_;
  }
  std::uint32_t rank(std::uint32_t place) const {
    return place < ranks_ - root_ ? place + root_ : place - (ranks_ - root_);
  }

 private:
  std::uint32_t ranks_, root_;
};

}  // namespace lockstep
