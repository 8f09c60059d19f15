#pragma once

#include <vector>

#include "sim/records/calibration.h"
#include "sim/records/measurement.h"

namespace lockstep {

/// Turns the measurements of one visit to one machine into its calibration. Those that hold tables
/// only, such as collectives between hosts, may be of other visits. Throws InputError where there
/// is nothing to calibrate from, or profiles are of different visits.
Calibration calibrate(const std::vector<Measurement>& measurements);

}  // namespace lockstep
