#pragma once

#include <vector>

#include "calibration/speed.h"
#include "sim/records/calibration.h"
#include "sim/records/measurement.h"

namespace lockstep {

/// One profile for each (model, batch, precision, graph, beside): the median of each layer over all
/// processes, at equal speed. A data-parallel step lasts as long as its slowest rank: of several
/// GPUs the device times are those of the slowest card, and the step that of the slowest process as
/// one must expect it. Times are then scaled so that a simulated `single` step lasts as long as the
/// unprofiled ones did (fit_to_step), which removes what profiling costs. Appends to `fits`. Throws
/// InputError where the samples contradict each other.
std::vector<Profile> fit_profiles(const std::vector<ProfileSample>& samples, const Speed& speed,
                                  int launch_queue, std::vector<Fit>& fits);

/// Of the unprofiled steps: between processes at equal speed, and between neighbouring steps of
/// one.
Noise fit_noise(const std::vector<ProfileSample>& samples, const Speed& speed);

}  // namespace lockstep
