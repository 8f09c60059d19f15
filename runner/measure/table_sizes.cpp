#include "runner/measure/table_sizes.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "sim/core/error.h"

namespace lockstep::runner {
namespace {

constexpr std::int64_t kAlign = 64;  ///< bytes, so that an odd size is not a slow one
constexpr double kRise = 1.15;       ///< between neighbours; where less, nothing can be far off
constexpr double kStraight = 0.03;
constexpr int kHalvings = 6;  ///< only about a jump do so many come together

/// low + share (high - low), aligned.
Bytes on_the_way(Bytes low, Bytes high, double share) {
  const double size =
      static_cast<double>(low.count) + share * static_cast<double>(high.count - low.count);
  return {static_cast<std::int64_t>(size) / kAlign * kAlign};
}

class Refinement {
 public:
  explicit Refinement(const std::function<AgreedPoint(Bytes)>& measure) : measure_(measure) {}

  void between(const AgreedPoint& low, const AgreedPoint& high, int halvings) {
    if (high.agreed.seconds() <= kRise * low.agreed.seconds()) return;
    const Bytes size = on_the_way(low.point.bytes, high.point.bytes, 0.5);
    if (size <= low.point.bytes) return;
    const AgreedPoint middle = measure_(size);
    added.push_back(middle);
    const double straight = (low.agreed.seconds() + high.agreed.seconds()) / 2;
    if (std::abs(straight / middle.agreed.seconds() - 1) <= kStraight || halvings <= 1) return;
    between(low, middle, halvings - 1);
    between(middle, high, halvings - 1);
  }

  std::vector<AgreedPoint> added;

 private:
  const std::function<AgreedPoint(Bytes)>& measure_;
};

}  // namespace

std::vector<Bytes> growing_sizes(Bytes least, Bytes most, int factor) {
  LOCKSTEP_ASSERT(least > Bytes{} && factor >= 2, "sizes grow");
  std::vector<Bytes> sizes;
  for (Bytes size = least; size < most; size.count *= factor) sizes.push_back(size);
  sizes.push_back(most);
  return sizes;
}

std::vector<Bytes> gradient_sizes(Bytes least, Bytes most) {
  constexpr Bytes kRound{4096};
  std::vector<Bytes> sizes = growing_sizes(least, most, 2);
  for (Bytes& size : sizes) {
    if (size < kRound || size == most) continue;
    size = on_the_way(size, {2 * size.count}, std::numbers::sqrt2 - 1);
  }
  std::erase_if(sizes, [most](Bytes size) { return size > most; });
  return sizes;
}

std::vector<Bytes> held_out_sizes(const std::vector<Bytes>& calibrated, int every) {
  constexpr double kNear = 0.2, kFar = 0.7;
  std::vector<Bytes> sizes;
  for (std::size_t i = 1; i < calibrated.size(); i += static_cast<std::size_t>(every)) {
    const double share = sizes.size() % 2 == 0 ? kNear : kFar;
    const Bytes size = on_the_way(calibrated[i - 1], calibrated[i], share);
    if (size > calibrated[i - 1]) sizes.push_back(size);
  }
  return sizes;
}

void refine(std::vector<AgreedPoint>& points, const std::function<AgreedPoint(Bytes)>& measure) {
  Refinement refinement(measure);
  for (std::size_t i = 1; i < points.size(); ++i) {
    refinement.between(points[i - 1], points[i], kHalvings);
  }
  std::ranges::copy(refinement.added, std::back_inserter(points));
  std::ranges::sort(points, {}, [](const AgreedPoint& each) { return each.point.bytes; });
}

}  // namespace lockstep::runner
