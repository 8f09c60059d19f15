#include "calibration/fit_constants.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/core/error.h"

namespace lockstep {
namespace {

using Vector = std::vector<double>;

/// The search in logarithms, where a factor of two is as far from here as from anywhere.
class Search {
 public:
  Search(const Residuals& residuals, std::span<const ConstantRange> ranges)
      : residuals_(residuals), ranges_(ranges) {}

  Vector run() {
    Vector at = best_of_grid();
    Vector r = evaluate(at);
    double damping = 1e-3;
    for (int turn = 0; turn < kMostTurns && cost(r) > kMet; ++turn) {
      const Vector next = moved(at, r, damping);
      if (largest_change(at, next) < kStill) break;
      Vector there = evaluate(next);
      if (cost(there) < cost(r)) {
        at = next;
        r = std::move(there);
        damping = std::max(damping / 10, 1e-12);
      } else {
        damping *= 10;
        if (damping > kGivenUp) break;
      }
    }
    return constants(at);
  }

 private:
  static constexpr int kMostTurns = 60;
  static constexpr double kMet = 1e-18, kStill = 1e-12, kGivenUp = 1e12, kNudge = 1e-4;

  static double cost(const Vector& r) {
    double sum = 0;
    for (const double each : r) sum += each * each;
    return sum;
  }

  static double largest_change(const Vector& a, const Vector& b) {
    double change = 0;
    for (std::size_t i = 0; i < a.size(); ++i) change = std::max(change, std::abs(a[i] - b[i]));
    return change;
  }

  static Vector constants(const Vector& logarithms) {
    Vector values;
    for (const double each : logarithms) values.push_back(std::exp(each));
    return values;
  }

  Vector evaluate(const Vector& at) const { return residuals_(constants(at)); }
  double low(std::size_t i) const { return std::log(ranges_[i].low); }
  double high(std::size_t i) const { return std::log(ranges_[i].high); }

  Vector best_of_grid() const {
    const std::size_t count = ranges_.size() == 1 ? 17 : 8;
    std::size_t cells = 1;
    for (std::size_t i = 0; i < ranges_.size(); ++i) cells *= count;
    Vector best;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t cell = 0; cell < cells; ++cell) {
      Vector at;
      std::size_t rest = cell;
      for (std::size_t i = 0; i < ranges_.size(); ++i, rest /= count) {
        const double part = (static_cast<double>(rest % count) + 0.5) / static_cast<double>(count);
        at.push_back(low(i) + part * (high(i) - low(i)));
      }
      const double here = cost(evaluate(at));
      if (here >= least) continue;
      least = here;
      best = at;
    }
    LOCKSTEP_ASSERT(!best.empty(), "residuals are numbers");
    return best;
  }

  /// One step: (J'J + damping diag(J'J)) step = -J'r, kept within the ranges.
  Vector moved(const Vector& at, const Vector& r, double damping) const {
    const std::size_t n = at.size();
    std::vector<Vector> slope;  // of each constant
    for (std::size_t i = 0; i < n; ++i) {
      Vector nudged = at;
      const double nudge = at[i] + kNudge > high(i) ? -kNudge : kNudge;
      nudged[i] += nudge;
      Vector column = evaluate(nudged);
      for (std::size_t k = 0; k < r.size(); ++k) column[k] = (column[k] - r[k]) / nudge;
      slope.push_back(std::move(column));
    }
    const auto dot = [](const Vector& a, const Vector& b) {
      double sum = 0;
      for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
      return sum;
    };
    // A constant that changes nothing stays where it is.
    constexpr double kTiny = 1e-30;
    const double a = dot(slope[0], slope[0]) * (1 + damping) + kTiny, p = -dot(slope[0], r);
    Vector step{p / a};
    if (n == 2) {
      const double b = dot(slope[0], slope[1]), q = -dot(slope[1], r);
      const double d = dot(slope[1], slope[1]) * (1 + damping) + kTiny;
      const double determinant = a * d - b * b;
      if (determinant <= 0) return at;
      step = {(p * d - q * b) / determinant, (q * a - p * b) / determinant};
    }
    Vector next = at;
    for (std::size_t i = 0; i < n; ++i) next[i] = std::clamp(at[i] + step[i], low(i), high(i));
    return next;
  }

  const Residuals& residuals_;
  std::span<const ConstantRange> ranges_;
};

}  // namespace

std::vector<double> fit_constants(const Residuals& residuals,
                                  std::span<const ConstantRange> ranges) {
  LOCKSTEP_ASSERT(ranges.size() == 1 || ranges.size() == 2, "one or two constants are fitted");
  for (const ConstantRange& range : ranges) {
    LOCKSTEP_ASSERT(range.low > 0 && range.low < range.high, "a range rises from above zero");
  }
  return Search(residuals, ranges).run();
}

}  // namespace lockstep
