#pragma once

#include <cstdint>

#include "sim/core/units.h"

namespace lockstep {

/// What a draw belongs to. The same key gives the same draw, whatever was drawn before or on which
/// thread: results do not depend on the order of events.
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint32_t worker = 0, iteration = 0, task = 0;
};

/// Stands in a DrawKey for "over all of them".
inline constexpr std::uint32_t kWhole = 0xffffffff;

/// A standard normal variate (Box-Muller over Philox4x32-10; Salmon et al. 2011).
double standard_normal(const DrawKey& key);
/// A variate of (0, 1], other bits of the same draw.
double uniform(const DrawKey& key);

/// The deviation of a log-normal's logarithm, from its standard deviation over its mean.
double sigma_of(double relative_deviation);

/// Log-normal factors with median one.
class LogNormal {
 public:
  /// `relative_deviation`: standard deviation over mean, >= 0; zero draws only ones.
  explicit LogNormal(double relative_deviation);
  bool varies() const { return sigma_ > 0; }
  Factor draw(const DrawKey& key) const;

 private:
  double sigma_ = 0;  ///< standard deviation of the logarithm
};

}  // namespace lockstep
