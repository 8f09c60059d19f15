#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/core/random.h"
#include "sim/core/time.h"
#include "sim/core/units.h"

namespace lockstep {

/// How a straggler's slow-down or delay varies from step to step: a factor on it, drawn for each
/// worker and step. Simulator and runner draw from here alike.
struct Variability {
  enum class Kind : std::uint8_t {
    constant,    ///< always one
    log_normal,  ///< exp(sigma Z), Z standard normal: median one
    pareto,      ///< P(X > x) = x^-shape from one on: mean shape / (shape - 1)
    periodic,    ///< `high` in one step of `every`, else `low`; or by the clock, see pauses_due
    samples,     ///< one of `values`
  };
  Kind kind = Kind::constant;
  double sigma = 0;                 ///< log_normal: >= 0
  double shape = 0;                 ///< pareto: > 1, or there is no mean
  int every = 0;                    ///< periodic, in steps; 0: by the clock
  Time period = {};                 ///< periodic by the clock
  double high = 1, low = 1;         ///< periodic
  bool aligned = true;              ///< periodic: all workers at once; else each from a drawn place
  bool listed = false;              ///< samples: one after another, alike for all; else drawn
  std::vector<double> values = {};  ///< samples
  double least = 0;                 ///< what is drawn below is raised to it
  bool operator==(const Variability&) const = default;
};

/// What no draw can be made of, in a few words; empty where all is well.
std::string_view fault_of(const Variability& variability);

bool by_clock(const Variability& variability);
/// False where it always is one.
bool varies(const Variability& variability);
/// Whether two workers may draw differently in the same step.
bool differs_by_worker(const Variability& variability);

/// `key.task` tells the draws of several stragglers apart: kDrawStream - number, which no task has.
inline constexpr std::uint32_t kDrawStream = kWhole - 1;
/// Draws stop at a hundred thousand, so that products of them stay in range: beyond what a Pareto
/// of shape 2 reaches in ten thousand million steps. Not of what goes by the clock.
Factor draw(const Variability& variability, const DrawKey& key);

/// Pauses by the clock that fall due in (from, to]: at d, d + period, ..., with d the period where
/// all are aligned, else drawn from (0, period] for (seed, worker).
std::int64_t pauses_due(const Variability& variability, const DrawKey& key, Time from, Time to);

/// Mean of what is drawn over all steps; of Pareto and log-normal the formula's, `least` aside. Of
/// pauses by the clock, zero: they have no mean per step.
double mean(const Variability& variability);

}  // namespace lockstep
