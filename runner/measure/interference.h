#pragma once

#include <vector>

#include "runner/communicators/communicator.h"
#include "runner/measure/device.h"
#include "sim/records/measurement.h"

namespace lockstep::runner {

/// How layers of each kind slow down beside an all-reduce of their worker, once while it waits for
/// a peer and once while it transfers, and the all-reduce beside compute. All ranks call and
/// compute at the same time; times are this rank's.
std::vector<InterferenceSample> measure_interference(Communicator& communicator, Device& device);

}  // namespace lockstep::runner
