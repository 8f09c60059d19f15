#pragma once

#include <vector>

#include "runner/communicators/communicator.h"
#include "runner/measure/device.h"

namespace lockstep::runner {

/// By rank, nanoseconds to add to its host's time to get rank 0's. Rank 0 asks each rank in turn
/// and takes the quickest of several answers, as in NTP: right to half of how much the two ways
/// differ. All ranks call; transfers before are forgotten.
std::vector<Moment> clock_offsets(Communicator& communicator, Device& device);

}  // namespace lockstep::runner
