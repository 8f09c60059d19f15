#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/records/validation.h"

namespace lockstep {

/// What a validation is held to, as shares of one; nothing where not given.
struct Bounds {
  std::optional<double> mean, worst;  ///< of each group's counted points
  std::optional<double> unstable;     ///< share of all points with several workers
  bool any() const { return mean || worst || unstable; }
};

/// What does not hold, one line each. Groups of which something else is wanted are left to that.
/// Bounds on errors do not hold where no point counts.
std::vector<std::string> check(const Validation& validation, const Bounds& bounds);

}  // namespace lockstep
