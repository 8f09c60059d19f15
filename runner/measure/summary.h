#pragma once

#include <string>
#include <vector>

#include "sim/records/run.h"

namespace lockstep::runner {

/// The runs of a visit to GPUs as a table, one line each; those that failed say how.
std::string run_table(const std::vector<Run>& runs);

}  // namespace lockstep::runner
