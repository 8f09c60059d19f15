#pragma once

#include <vector>

#include "sim/records/calibration.h"
#include "sim/records/measurement.h"

namespace lockstep {

/// Turns the measurements of one visit to one machine into its calibration. Throws InputError where
/// there is nothing to calibrate from, or they are of different visits.
Calibration calibrate(const std::vector<Measurement>& measurements);

}  // namespace lockstep
