#pragma once

#include <functional>
#include <span>
#include <vector>

namespace lockstep {

/// What a constant may be, both ends included and above zero.
struct ConstantRange {
  double low = 0, high = 0;
};

/// Residuals of the points at these constants: the logarithms of predicted over published.
using Residuals = std::function<std::vector<double>(std::span<const double>)>;

/// The constants (one or two) within `ranges` with the least sum of squared residuals: the best of
/// a coarse grid over their logarithms, from there by Levenberg and Marquardt's steps (Marquardt
/// 1963). Where as many points as constants can be met, they are, to about 1e-8.
std::vector<double> fit_constants(const Residuals& residuals,
                                  std::span<const ConstantRange> ranges);

}  // namespace lockstep
