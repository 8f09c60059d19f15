#include "calibration/fit_constants.h"

#include <cmath>

#include "tests/catch.h"

namespace lockstep {
namespace {

TEST_CASE("one constant is found where its residual vanishes", "[published]") {
  // 2 + 3 / x = 5 at x = 1, far from the middle of the range.
  const Residuals residuals = [](std::span<const double> x) {
    return std::vector<double>{std::log((2 + 3 / x[0]) / 5)};
  };
  const std::vector<ConstantRange> ranges{{1e-3, 1e9}};
  CHECK(fit_constants(residuals, ranges)[0] == Approx(1).epsilon(1e-7));
}

TEST_CASE("two constants are found where both residuals vanish", "[published]") {
  // Latency a and seconds a byte b: 6 a + 6 b = 0.036, 24 a + 1.5 b = 0.0315: a = 1 ms, b = 5 ms.
  const Residuals residuals = [](std::span<const double> x) {
    return std::vector<double>{std::log((6 * x[0] + 6 * x[1]) / 0.036),
                               std::log((24 * x[0] + 1.5 * x[1]) / 0.0315)};
  };
  const std::vector<ConstantRange> ranges{{1e-6, 1}, {1e-6, 1}};
  const std::vector<double> found = fit_constants(residuals, ranges);
  CHECK(found[0] == Approx(1e-3).epsilon(1e-6));
  CHECK(found[1] == Approx(5e-3).epsilon(1e-6));
}

TEST_CASE("between contradicting points a constant takes the middle, within its range",
          "[published]") {
  // x = 1 and x = 4 differ by as much from 2.
  const Residuals residuals = [](std::span<const double> x) {
    return std::vector<double>{std::log(x[0]), std::log(x[0] / 4)};
  };
  const std::vector<ConstantRange> wide{{0.01, 100}}, narrow{{3, 100}};
  CHECK(fit_constants(residuals, wide)[0] == Approx(2).epsilon(1e-6));
  CHECK(fit_constants(residuals, narrow)[0] == Approx(3).epsilon(1e-6));
}

}  // namespace
}  // namespace lockstep
