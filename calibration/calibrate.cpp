#include "calibration/calibrate.h"

#include <fmt/core.h>

#include <algorithm>

#include "calibration/ddp_host.h"
#include "calibration/fit_profiles.h"
#include "calibration/fit_tables.h"
#include "calibration/robust.h"
#include "calibration/speed.h"
#include "sim/core/error.h"

namespace lockstep {
namespace {

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

bool has_profiles(const Measurement& measurement) {
  return !measurement.profiles.empty();
}

/// All samples in one measurement; the rest is the first one's with profiles. Tables alone, such as
/// those of collectives between hosts, may come from another visit.
Measurement together(const std::vector<Measurement>& measurements) {
  if (measurements.empty()) throw InputError({}, "", "no measurement given", "give at least one");
  auto base = std::ranges::find_if(measurements, has_profiles);
  if (base == measurements.end()) base = measurements.begin();
  Measurement all = *base;
  std::vector<Time> references{all.reference};
  for (auto next = measurements.begin(); next != measurements.end(); ++next) {
    if (next == base) continue;
    if (has_profiles(*next) && next->id != all.id) {
      throw InputError(
          {}, "",
          fmt::format("measurements of different visits: \"{}\" and \"{}\"", all.id, next->id),
          "calibrate each visit on its own");
    }
    if (next->id == all.id) references.push_back(next->reference);
    all.launch_queue = std::max(all.launch_queue, next->launch_queue);
    append(all.profiles, next->profiles);
    append(all.collectives, next->collectives);
    append(all.copies, next->copies);
    append(all.interference, next->interference);
    append(all.cores, next->cores);
  }
  all.reference = median(std::move(references));
  return all;
}

}  // namespace

Calibration calibrate(const std::vector<Measurement>& measurements) {
  Measurement all = together(measurements);
  if (all.profiles.empty()) {
    throw InputError({}, "", fmt::format("measurement \"{}\" holds no profile", all.id),
                     "measure at least one model with the strategy single");
  }
  Calibration result;
  result.id = all.id;
  result.origin = all.origin;
  result.reference = all.reference;
  result.drift_exponent = fit_drift_exponent(all.profiles);
  const Speed speed(result);
  result.launch_queue = all.launch_queue;
  result.copies = fit_copies(all.copies);
  fit_gradient_hooks(all.profiles, result.copies);
  result.profiles = fit_profiles(all.profiles, speed, all.launch_queue, result.fits);
  result.collectives = fit_collectives(all.collectives, speed, result.fits);
  result.interference = fit_interference(all.interference, result.fits);
  result.cores = fit_cores(all.cores, speed);
  result.noise = fit_noise(all.profiles, speed);
  return result;
}

}  // namespace lockstep
