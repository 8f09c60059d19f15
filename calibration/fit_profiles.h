#pragma once

#include <vector>

#include "calibration/speed.h"
#include "sim/records/calibration.h"
#include "sim/records/measurement.h"

namespace lockstep {

/// One profile for each (model, batch, precision, graph, beside): the median of each layer over all
/// processes, at equal speed. Where cores compute, ranks are alike and count as more samples; of
/// several GPUs the one whose layers take longest stands for all, since a step lasts as long as the
/// slowest. What is the bottleneck of a step (device or host) is then scaled so that a simulated
/// `single` step lasts as long as the unprofiled ones did, which removes what profiling costs.
/// Appends to `fits`. Throws InputError where the samples contradict each other.
std::vector<Profile> fit_profiles(const std::vector<ProfileSample>& samples, const Speed& speed,
                                  int launch_queue, std::vector<Fit>& fits);

/// Of the unprofiled steps at equal speed: between processes, and between the steps of one.
Noise fit_noise(const std::vector<ProfileSample>& samples, const Speed& speed);

}  // namespace lockstep
