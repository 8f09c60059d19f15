#pragma once

#include <vector>

#include "sim/records/calibration.h"
#include "sim/records/run.h"
#include "sim/records/validation.h"

namespace lockstep {

/// Of a run of `ddp` on GPUs that recorded its buckets: when each was launched and was done, from
/// the beginning of the step, and how long the last one goes on after its gradients were there,
/// which is the communication that nothing hides. Errors are the predicted share of the step less
/// the measured one, each of the step that it is a moment of: recording slows the host of a step,
/// which the prediction knows nothing of (share_later). Empty where there is nothing to compare.
std::vector<ValidationPoint> validate_buckets(const Calibration& calibration, const Run& run);

}  // namespace lockstep
