#include "sim/analysis/uncertainty.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

namespace lockstep {
namespace {

/// The largest residual of the fits whose name begins so.
double residual(const Calibration& calibration, std::string_view what) {
  double largest = 0;
  for (const Fit& fit : calibration.fits) {
    if (fit.what.starts_with(what)) largest = std::max(largest, fit.residual);
  }
  return largest;
}

/// The largest residual of the profiles of this model, eager or as a graph as this one is.
double profile_residual(const Calibration& calibration, const Profile& profile) {
  double largest = 0;
  for (const Fit& fit : calibration.fits) {
    const bool graph = fit.what.find("as a graph") != std::string::npos;
    if (fit.what.starts_with("profile of " + profile.model + " ") && graph == profile.graph) {
      largest = std::max(largest, fit.residual);
    }
  }
  return largest;
}

double share(Time part, Time whole) {
  return whole > Time{} ? part.seconds() / whole.seconds() : 0;
}

}  // namespace

Uncertainty uncertainty(const Calibration& calibration, const Profile& profile,
                        const Breakdown& step) {
  const Time whole = step.step();
  const double own = profile.spread_between_processes;
  const double compute =
      profile_residual(calibration, profile) * share(step.compute + step.host, whole);
  const double exposed = residual(calibration, "collective") * share(step.exposed, whole);
  // Compute beside communication rests on the interference factors.
  const double beside =
      residual(calibration, "interference") * share(std::min(step.hidden, whole), whole);
  Uncertainty result;
  result.repeat = own > 0 ? own : calibration.noise.process;
  result.fit = std::sqrt(compute * compute + exposed * exposed + beside * beside);
  return result;
}

}  // namespace lockstep
