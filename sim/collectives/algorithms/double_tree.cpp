#include "sim/collectives/algorithms/double_tree.h"

#include <algorithm>
#include <bit>

namespace lockstep {
namespace {

/// Edges are numbered by the place that they lead to: 2 x place + tree. Places from 1 on; 0 is the
/// root of both.
using Parents = std::vector<std::uint32_t>;
using Colours = std::vector<std::uint8_t>;

std::uint32_t segments(const Collective& collective) {
  const std::int64_t segment = collective.step.segment.count;
  if (segment == 0) return 2;  // one a tree
  const std::int64_t count = (collective.bytes.count + segment - 1) / segment;
  return static_cast<std::uint32_t>(std::max<std::int64_t>(count, 2));
}

/// In-order binary tree of 1 .. count: odd numbers are leaves. A parent beyond the last is passed
/// over. Zero above the top.
std::uint32_t in_order_parent(std::uint32_t number, std::uint32_t count) {
  if (number == std::bit_floor(count)) return 0;
  do {
    const std::uint32_t bit = number & (~number + 1);
    number = (number & (bit << 1)) != 0 ? number - bit : number + bit;
  } while (number > count);
  return number;
}

/// The second tree is the first one mirrored, or, where that would have the same leaves, shifted.
Parents parents_of(std::uint32_t count) {
  Parents parents(2 * (std::size_t{count} + 1), 0);
  const auto moved = [count](std::uint32_t number) {
    if (number == 0) return number;
    return count % 2 == 0 ? count + 1 - number : number % count + 1;
  };
  for (std::uint32_t number = 1; number <= count; ++number) {
    const std::uint32_t parent = in_order_parent(number, count);
    parents[2 * number] = parent;
    parents[2 * moved(number) + 1] = moved(parent);
  }
  return parents;
}

/// So that two edges out of a place differ, and two into it. Each edge has at most one of either
/// beside it: alternate along the paths and circles that these make.
Colours coloured(const Parents& parents) {
  constexpr std::uint32_t kNone = 0;
  std::vector<std::array<std::uint32_t, 2>> out(parents.size() / 2, {kNone, kNone});
  for (std::uint32_t edge = 2; edge < parents.size(); ++edge) {
    auto& both = out[parents[edge]];
    both[both[0] == kNone ? 0 : 1] = edge;
  }
  constexpr std::uint8_t kUnknown = 2;
  Colours colours(parents.size(), kUnknown);
  std::vector<std::uint32_t> open;
  for (std::uint32_t start = 2; start < parents.size(); ++start) {
    if (colours[start] != kUnknown) continue;
    colours[start] = 0;
    open.push_back(start);
    while (!open.empty()) {
      const std::uint32_t edge = open.back();
      open.pop_back();
      const auto& both = out[parents[edge]];
      for (const std::uint32_t beside : {edge ^ 1U, both[0] == edge ? both[1] : both[0]}) {
        if (beside == kNone || colours[beside] != kUnknown) continue;
        colours[beside] = static_cast<std::uint8_t>(1 - colours[edge]);
        open.push_back(beside);
      }
    }
  }
  return colours;
}

}  // namespace

DoubleTree::DoubleTree(const Collective& collective, std::uint32_t ranks)
    : places_(ranks, collective.root),
      goes_up_(collective.kind != CollectiveKind::broadcast),
      goes_down_(collective.kind != CollectiveKind::reduce),
      parts_(whole_elements(collective), segments(collective), collective.step.element),
      nodes_(ranks) {
  if (ranks == 1) return;
  const Parents parents = parents_of(ranks - 1);
  join(parents, coloured(parents));
}

/// A segment goes on in the first later step of the edge's colour.
void DoubleTree::join(const Parents& parents, const Colours& colours) {
  for (std::uint32_t edge = 2; edge < parents.size(); ++edge) {
    const std::uint32_t place = edge / 2, colour = colours[edge];
    nodes_[place].into[colour] = {.parent = parents[edge], .tree = edge % 2};
    nodes_[parents[edge]].child[colour] = place;
  }
  struct Arrival {
    std::uint32_t place, colour;
  };
  std::vector<Arrival> open;
  for (const std::uint32_t colour : {0U, 1U}) {
    open.push_back({nodes_[0].child[colour], colour});
    nodes_[open.back().place].into[colour].first = colour;
  }
  while (!open.empty()) {
    const auto [place, colour] = open.back();
    open.pop_back();
    const Edge& edge = nodes_[place].into[colour];
    const std::uint32_t more = (parts_.count() + 1 - edge.tree) / 2 - 1;
    one_way_ = std::max(one_way_, edge.first + 2 * more + 1);
    for (const std::uint32_t next : {0U, 1U}) {
      const std::uint32_t child = nodes_[place].child[next];
      if (child == kNobody || nodes_[child].into[next].tree != edge.tree) continue;
      nodes_[child].into[next].first = edge.first + (next == colour ? 2 : 1);
      open.push_back({child, next});
    }
  }
}

/// What goes over the edge into `child` in a step of a broadcast, if anything.
Message DoubleTree::along(std::uint32_t child, std::uint32_t step, std::uint32_t receiver) const {
  const Edge& edge = nodes_[child].into[step % 2];
  if (step < edge.first) return {};
  const std::uint32_t index = (step - edge.first) / 2 * 2 + edge.tree;
  if (index >= parts_.count()) return {};
  return {places_.rank(receiver), index, 1, parts_.bytes(index)};
}

Message DoubleTree::sent(std::uint32_t rank, std::uint32_t step) const {
  const std::uint32_t place = places_.place(rank), down = downward(step);
  if (is_up(step)) {
    const std::uint32_t parent = nodes_[place].into[down % 2].parent;
    return parent == kNobody ? Message{} : along(place, down, parent);
  }
  const std::uint32_t child = nodes_[place].child[down % 2];
  return child == kNobody ? Message{} : along(child, down, child);
}

std::uint32_t DoubleTree::source(std::uint32_t rank, std::uint32_t step) const {
  const Node& node = nodes_[places_.place(rank)];
  const std::uint32_t colour = downward(step) % 2;
  const std::uint32_t other = is_up(step) ? node.child[colour] : node.into[colour].parent;
  return other == kNobody ? rank : places_.rank(other);
}

}  // namespace lockstep
