#pragma once

#include "runner/measure/configuration.h"
#include "runner/measure/estimate.h"

namespace lockstep::runner {

/// Measures a configuration with a single step in each block, to see how long that takes; all ranks
/// call. What it measures is not kept. Only rank 0's answer means something.
QuickPass time_quickly(Worker& worker, const Configuration& configuration);

/// How long ago this process was started.
Time process_age();

}  // namespace lockstep::runner
