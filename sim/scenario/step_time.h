#pragma once

#include "sim/records/calibration.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

/// The calibration with the scenario's model at the scenario's `step_times`, in place of what was
/// measured: at each of these batches the profile that the calibration has there, every device time
/// multiplied by the one factor with which a worker alone takes that time for a step. Host times
/// stay as measured. Throws InputError where the calibration lacks the model, and where launching
/// takes a host longer than the step.
Calibration with_step_times(const Scenario& scenario, const Calibration& calibration);

}  // namespace lockstep
