#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "runner/measure/worker.h"

namespace lockstep::runner {

/// What every worker takes for its share, all at once; the same on all workers.
using ShareTimes = std::function<std::vector<Time>(const std::vector<int>& shares)>;

/// Shares of `batch` samples a worker, over all `workers`, that take alike: begins with equal ones
/// and shares out anew by the speeds measured, until times are close or nothing changes
/// (sim/analysis/split.h has the rule). Says each round on stderr where it may `tell`. All ranks
/// call; all get the same.
std::vector<int> balanced_shares(std::size_t workers, int batch, const ShareTimes& times,
                                 bool tell);
/// The same for steps of workers on cores, stragglers included; rank 0 tells.
std::vector<int> balanced_shares(Worker& worker, const std::string& model, int batch);

/// InputError where shares of --split are not one for each of `workers`, or do not add up to what
/// every one of the batches makes for them.
void check_split(const MeasureOptions& options, int workers);

}  // namespace lockstep::runner
