#pragma once

#include <vector>

#include "runner/communicators/communicator.h"
#include "runner/measure/device.h"
#include "sim/records/collective_table.h"

namespace lockstep::runner {

/// Times one collective over all ranks of the communicator at each size, `rounds` times; every rank
/// calls. A time is from the last rank's launch to the last rank's end, by the ranks' common clock
/// (one host).
CollectiveTable measure_collective(CollectiveKind kind, Communicator& communicator, Device& device,
                                   const std::vector<Bytes>& sizes, int rounds);

}  // namespace lockstep::runner
