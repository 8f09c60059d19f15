#pragma once

#include <string>
#include <vector>

#include "runner/measure/options.h"
#include "sim/core/error.h"

namespace lockstep::runner {

/// The whole measurement: as a worker where a launcher's variables say so, else by starting
/// workers, once per repeat, and putting together what they measured. `arguments` are the command
/// line's. Throws RunError where a worker fails, after keeping what was measured; where a worker
/// has refused its input, and said so, returns that.
ExitCode measure(const MeasureOptions& options, const std::vector<std::string>& arguments);

}  // namespace lockstep::runner
