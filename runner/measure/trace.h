#pragma once

#include <string>

#include "runner/measure/worker.h"
#include "sim/records/timeline.h"

namespace lockstep::runner {

/// Collects every worker's spans at rank 0, which writes them to `out`/<run>.trace.json for
/// Perfetto. All ranks call.
void write_measured_timeline(Worker& worker, const std::string& run, const Timeline& mine);

}  // namespace lockstep::runner
