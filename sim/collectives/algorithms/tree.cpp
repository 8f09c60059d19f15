#include "sim/collectives/algorithms/tree.h"

#include <algorithm>
#include <bit>

namespace lockstep {

std::uint32_t Tree::levels_of(std::uint32_t ranks) {
  return static_cast<std::uint32_t>(std::bit_width(ranks - 1));
}

Tree::Tree(CollectiveKind kind, Bytes bytes, Places places, std::uint32_t levels)
    : places_(places),
      adds_(kind == CollectiveKind::reduce || kind == CollectiveKind::all_reduce),
      apart_(kind == CollectiveKind::gather || kind == CollectiveKind::scatter),
      up_(adds_ || kind == CollectiveKind::gather ? levels : 0),
      steps_(kind == CollectiveKind::all_reduce ? 2 * levels : levels),
      bytes_(bytes) {}

Message Tree::sent(std::uint32_t rank, std::uint32_t step) const {
  const std::uint32_t place = places_.place(rank), apart = distance(step);
  const std::uint32_t peer = place ^ apart;
  // Places above the lowest bit of the pair take no part: below it all has been added, or not come.
  if (peer >= places_.ranks() || place % apart != 0) return {};
  if ((step < up_) != (place > peer)) return {};
  if (!apart_) return {places_.rank(peer), 0, 1, bytes_};
  const std::uint32_t below = std::max(place, peer);
  const std::uint32_t arrays = std::min(apart, places_.ranks() - below);
  return {places_.rank(peer), places_.rank(below), arrays, {bytes_.count * arrays}};
}

std::uint32_t Tree::source(std::uint32_t rank, std::uint32_t step) const {
  const std::uint32_t peer = places_.place(rank) ^ distance(step);
  return places_.rank(std::min(peer, places_.ranks() - 1));  // who is not there sends nothing
}

}  // namespace lockstep
