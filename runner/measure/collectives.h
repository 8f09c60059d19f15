#pragma once

#include <string>
#include <vector>

#include "runner/communicators/communicator.h"
#include "runner/measure/device.h"
#include "sim/records/collective_table.h"

namespace lockstep::runner {

/// How collectives are timed.
struct CollectiveSizes {
  std::vector<Bytes> bytes;        ///< of one rank's array, ascending
  int rounds = 7;                  ///< at each size; fewer, at least two, where it takes long
  Moment longest = 3'000'000'000;  ///< ns: sizes that would take longer are left out
};

/// Times one collective over all ranks of the communicator at each size; every rank calls. A time
/// is from the last rank's launch to the last rank's end, at rank 0's time; `offsets`, by rank,
/// lead there (all zero on one host).
CollectiveTable measure_collective(CollectiveKind kind, Communicator& communicator, Device& device,
                                   const CollectiveSizes& sizes,
                                   const std::vector<Moment>& offsets);

}  // namespace lockstep::runner
