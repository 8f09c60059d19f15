#pragma once

#include "sim/records/calibration.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

/// Throws InputError where one process cannot drive `workers` devices as the scenario has it: they
/// must be GPUs of one host, launched eagerly, with a sample each.
void check_one_process(const Scenario& scenario, const Calibration& calibration, int workers);

}  // namespace lockstep
