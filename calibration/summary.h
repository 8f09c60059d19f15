#pragma once

#include <string>

#include "sim/records/calibration.h"

namespace lockstep {

/// For people: what was calibrated, and how well the fits hold.
std::string summary(const Calibration& calibration);

}  // namespace lockstep
