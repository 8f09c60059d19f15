#pragma once

#include "sim/records/calibration.h"
#include "sim/records/profile.h"
#include "sim/records/result.h"

namespace lockstep {

/// What a step's prediction inherits from its calibration (`drawn` stays zero): how far whole
/// processes of the same thing lie apart, and how well the fits describe what was measured, each
/// weighted by the part of the step that rests on it.
Uncertainty uncertainty(const Calibration& calibration, const Profile& profile,
                        const Breakdown& step);

}  // namespace lockstep
