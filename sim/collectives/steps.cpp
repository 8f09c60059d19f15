#include "sim/collectives/steps.h"

#include <algorithm>
#include <bit>

#include "sim/core/error.h"

namespace lockstep {
namespace {

constexpr Message kNothing{};

/// What a rank of a folded group is called in it, ranks of the first pairs sharing a member.
std::uint32_t member_of(std::uint32_t rank, std::uint32_t extra) {
  return rank < 2 * extra ? rank / 2 : rank - extra;
}
std::uint32_t rank_of(std::uint32_t member, std::uint32_t extra) {
  return member < extra ? 2 * member : member + extra;
}

}  // namespace

bool can_run(CollectiveKind kind, Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::ring:
      return kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast;
    case Algorithm::gloo_ring:
    case Algorithm::recursive_doubling:
    case Algorithm::halving_doubling:
      return kind == CollectiveKind::all_reduce;
    case Algorithm::tree:
      return kind != CollectiveKind::gather && kind != CollectiveKind::scatter;
    case Algorithm::root:
      return kind != CollectiveKind::all_reduce;
  }
  return false;
}

StepPlan::StepPlan(const Collective& collective, std::uint32_t ranks)
    : kind_(collective.kind),
      algorithm_(collective.algorithm),
      ranks_(ranks),
      bytes_(collective.bytes.count),
      element_(collective.step.element.count),
      segment_(collective.step.segment.count) {
  LOCKSTEP_ASSERT(ranks > 0 && element_ > 0, "a collective has ranks and elements");
  LOCKSTEP_ASSERT(can_run(kind_, algorithm_), "an algorithm fits its collective");
  if (ranks == 1) return;
  const auto floor = static_cast<std::uint32_t>(std::bit_width(ranks)) - 1;
  levels_ = floor;
  if (algorithm_ == Algorithm::recursive_doubling || algorithm_ == Algorithm::halving_doubling) {
    extra_ = ranks - (1U << floor);
    const std::uint32_t folds = extra_ > 0 ? 1 : 0;
    const bool halves = algorithm_ == Algorithm::halving_doubling;
    steps_ = 2 * folds + levels_ * (halves ? 2 : 1);
    reducing_ = folds + levels_;
  } else if (algorithm_ == Algorithm::tree) {
    levels_ = static_cast<std::uint32_t>(std::bit_width(ranks - 1));
    steps_ = levels_ * (kind_ == CollectiveKind::all_reduce ? 2 : 1);
    reducing_ = kind_ == CollectiveKind::broadcast ? 0 : levels_;
  } else if (algorithm_ == Algorithm::root) {
    steps_ = 1;
    reducing_ = kind_ == CollectiveKind::reduce ? 1 : 0;
  } else {
    cut_into_segments();
  }
}

/// Of the algorithms along a ring.
void StepPlan::cut_into_segments() {
  const std::int64_t elements = (bytes_ + element_ - 1) / element_;
  if (algorithm_ == Algorithm::gloo_ring) {
    constexpr std::int64_t kMostSegment = 1 << 20;
    const std::int64_t most = std::max(kMostSegment / element_, std::int64_t{1}) * element_;
    const std::int64_t total = elements * element_;
    const std::int64_t wanted = std::max((total + most - 1) / most, std::int64_t{2} * ranks_);
    const std::int64_t a_rank = (wanted + ranks_ - 1) / ranks_;
    chunks_ = static_cast<std::uint32_t>(a_rank * ranks_);
    segment_ = std::max((elements + chunks_ - 1) / chunks_, std::int64_t{1}) * element_;
    reducing_ = chunks_ - chunks_ / ranks_;
    steps_ = 2 * reducing_;
    return;
  }
  if (kind_ == CollectiveKind::all_reduce) {
    // The first elements % n chunks hold one element more; a broken last element counts as whole.
    chunks_ = ranks_;
    least_ = elements / chunks_;
    larger_ = elements % chunks_;
    reducing_ = ranks_ - 1;
    steps_ = 2 * reducing_;
    return;
  }
  if (segment_ == 0 || segment_ > bytes_) segment_ = std::max<std::int64_t>(bytes_, 1);
  segment_ = std::max(segment_ / element_, std::int64_t{1}) * element_;
  chunks_ =
      static_cast<std::uint32_t>(std::max<std::int64_t>((bytes_ + segment_ - 1) / segment_, 1));
  steps_ = ranks_ - 2 + chunks_;
}

Bytes StepPlan::chunk(std::uint32_t index) const {
  if (algorithm_ == Algorithm::ring && kind_ == CollectiveKind::all_reduce) {
    return Bytes{(least_ + (index < larger_ ? 1 : 0)) * element_};
  }
  const std::int64_t whole =
      algorithm_ == Algorithm::gloo_ring ? (bytes_ + element_ - 1) / element_ * element_ : bytes_;
  return Bytes{std::clamp(whole - segment_ * index, std::int64_t{0}, segment_)};
}

bool StepPlan::reduces(std::uint32_t step) const {
  return step < reducing_;
}

std::uint32_t StepPlan::needed(std::uint32_t step) const {
  if (algorithm_ != Algorithm::gloo_ring) return step;
  // Two steps may be under way, but reducing ends before gathering begins.
  const std::uint32_t before = step == 0 ? 0 : step - 1;
  return step >= reducing_ ? std::max(before, reducing_) : before;
}

bool StepPlan::even() const {
  if (ranks_ == 1) return true;
  const bool rings = algorithm_ == Algorithm::ring || algorithm_ == Algorithm::gloo_ring;
  return rings && kind_ == CollectiveKind::all_reduce && chunk(0) == chunk(chunks_ - 1);
}

void StepPlan::sends(std::uint32_t rank, std::uint32_t step, std::vector<Message>& out) const {
  if (algorithm_ != Algorithm::root) {
    const Message message = sent(rank, step);
    if (message.bytes > Bytes{}) out.push_back(message);
    return;
  }
  const bool from_root = kind_ == CollectiveKind::scatter || kind_ == CollectiveKind::broadcast;
  if (bytes_ == 0) return;
  if (!from_root) {
    if (rank != 0) out.push_back({0, Bytes{bytes_}});
    return;
  }
  for (std::uint32_t peer = 1; rank == 0 && peer < ranks_; ++peer) {
    out.push_back({peer, Bytes{bytes_}});
  }
}

void StepPlan::receives(std::uint32_t rank, std::uint32_t step, std::vector<Message>& out) const {
  if (algorithm_ != Algorithm::root) {
    const std::uint32_t from = source(rank, step);
    const Message message = sent(from, step);
    if (message.bytes > Bytes{} && message.peer == rank) out.push_back({from, message.bytes});
    return;
  }
  const bool to_root = kind_ == CollectiveKind::gather || kind_ == CollectiveKind::reduce;
  if (bytes_ == 0) return;
  if (!to_root) {
    if (rank != 0) out.push_back({0, Bytes{bytes_}});
    return;
  }
  for (std::uint32_t peer = 1; rank == 0 && peer < ranks_; ++peer) {
    out.push_back({peer, Bytes{bytes_}});
  }
}

Message StepPlan::sent(std::uint32_t rank, std::uint32_t step) const {
  switch (algorithm_) {
    case Algorithm::ring:
      return kind_ == CollectiveKind::broadcast ? chain(rank, step) : ring(rank, step);
    case Algorithm::gloo_ring:
      return gloo_ring(rank, step);
    case Algorithm::recursive_doubling:
    case Algorithm::halving_doubling:
      return folded(rank, step);
    case Algorithm::tree:
      return tree(rank, step);
    case Algorithm::root:
      break;
  }
  return kNothing;
}

/// The rank whose message could go to `rank` in `step`.
std::uint32_t StepPlan::source(std::uint32_t rank, std::uint32_t step) const {
  const std::uint32_t left = rank == 0 ? ranks_ - 1 : rank - 1;
  if (algorithm_ == Algorithm::ring) return left;
  if (algorithm_ == Algorithm::gloo_ring) return rank + 1 == ranks_ ? 0 : rank + 1;
  return std::min(partner(rank, step), ranks_ - 1);
}

Message StepPlan::ring(std::uint32_t rank, std::uint32_t step) const {
  // Reduce-scatter: rank r starts with chunk r. All-gather: it starts with chunk r + 1, which it
  // has just completed. Both then pass on what they received in the step before.
  const bool gathering = step >= reducing_;
  const std::uint32_t first = rank + (gathering ? 1 : 0);
  const std::uint32_t done = gathering ? step - reducing_ : step;
  const std::uint32_t index = first + ranks_ - done;
  return {rank + 1 == ranks_ ? 0 : rank + 1, chunk(index < ranks_ ? index : index % ranks_)};
}

Message StepPlan::gloo_ring(std::uint32_t rank, std::uint32_t step) const {
  // Reduce-scatter begins with the chunk of r + 1, all-gather with the rank's own.
  const bool gathering = step >= reducing_;
  const std::uint32_t a_rank = chunks_ / ranks_;
  const std::uint32_t first = (rank + (gathering ? 0 : 1)) * a_rank;
  const std::uint32_t done = gathering ? step - reducing_ : step;
  return {rank == 0 ? ranks_ - 1 : rank - 1, chunk((first + done) % chunks_)};
}

Message StepPlan::chain(std::uint32_t rank, std::uint32_t step) const {
  const bool sends = rank + 1 < ranks_ && step >= rank && step - rank < chunks_;
  return sends ? Message{rank + 1, chunk(step - rank)} : kNothing;
}

/// With whom a rank has to do in a step, whoever sends; may lie beyond the last rank.
std::uint32_t StepPlan::partner(std::uint32_t rank, std::uint32_t step) const {
  if (algorithm_ == Algorithm::tree) {
    const bool up = step < reducing_;
    return rank ^ (1U << (up ? step : levels_ - 1 - (step - reducing_)));
  }
  if (folding(step) || unfolding(step)) return rank < 2 * extra_ ? rank ^ 1U : rank;
  const std::uint32_t inner = step - (extra_ > 0 ? 1 : 0);
  const std::uint32_t member = member_of(rank, extra_);
  if (algorithm_ == Algorithm::recursive_doubling) {
    return rank_of(member ^ (1U << inner), extra_);
  }
  const std::uint32_t level = inner < levels_ ? inner : 2 * levels_ - 1 - inner;
  return rank_of(member ^ (1U << (levels_ - 1 - level)), extra_);
}

Message StepPlan::tree(std::uint32_t rank, std::uint32_t step) const {
  const bool up = step < reducing_;
  const std::uint32_t peer = partner(rank, step);
  const std::uint32_t distance = rank ^ peer;
  // Ranks above the lowest bit of the pair take no part: below it all has been added, or not come.
  const bool takes_part = peer < ranks_ && rank % distance == 0;
  return takes_part && up == (rank > peer) ? Message{peer, Bytes{bytes_}} : kNothing;
}

Message StepPlan::folded(std::uint32_t rank, std::uint32_t step) const {
  const std::int64_t whole = (bytes_ + element_ - 1) / element_ * element_;
  const std::uint32_t peer = partner(rank, step);
  const bool in_pair = rank < 2 * extra_;
  const bool odd = rank % 2 == 1;
  if (folding(step) || unfolding(step)) {
    return in_pair && odd == folding(step) ? Message{peer, Bytes{whole}} : kNothing;
  }
  if (in_pair && odd) return kNothing;
  if (algorithm_ == Algorithm::recursive_doubling) return {peer, Bytes{whole}};
  const std::uint32_t inner = step - (extra_ > 0 ? 1 : 0);
  const std::uint32_t member = member_of(rank, extra_);
  if (inner < levels_) return {peer, halved(member, inner, false)};
  return {peer, halved(member, 2 * levels_ - 1 - inner, true)};
}

/// The half that a member keeps at a level of halving, or the one that it sends away. The lower
/// half is the larger, and its members have a zero in the bit of the level.
Bytes StepPlan::halved(std::uint32_t member, std::uint32_t level, bool kept) const {
  std::int64_t elements = (bytes_ + element_ - 1) / element_;
  for (std::uint32_t l = 0;; ++l) {
    const bool upper = (member >> (levels_ - 1 - l) & 1U) != 0;
    const std::int64_t half = (elements + 1) / 2;
    if (l == level) return Bytes{(upper == kept ? elements - half : half) * element_};
    elements = upper ? elements - half : half;
  }
}

}  // namespace lockstep
