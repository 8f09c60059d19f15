#pragma once

#include <string>
#include <vector>

#include "runner/measure/worker.h"

namespace lockstep::runner {

/// Shares of `batch` samples a worker, over all workers, at which their steps, stragglers included,
/// take alike: begins with equal ones and shares out anew by the speeds measured, all workers at
/// once, until times are close or nothing changes (sim/analysis/split.h has the rule). Rank 0 says
/// each round on stderr. All ranks call; all get the same.
std::vector<int> balanced_shares(Worker& worker, const std::string& model, int batch);

/// InputError where shares of --split are not one for each of `workers`, or do not add up to what
/// every one of the batches makes for them.
void check_split(const MeasureOptions& options, int workers);

}  // namespace lockstep::runner
