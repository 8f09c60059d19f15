#pragma once

#include <string>

#include "sim/records/calibration.h"
#include "sim/records/run.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

/// Of a run of a parameter server: how stale its updates were and how many samples all workers got
/// through in a second, predicted and measured (the latter as it was, at the machine's speed of the
/// day). Empty for other runs.
std::string compare_servers(const Calibration& calibration, const Run& run,
                            const PlatformOptions& platform = {});

}  // namespace lockstep
