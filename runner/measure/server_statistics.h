#pragma once

#include <vector>

#include "runner/measure/bench.h"
#include "runner/measure/worker.h"
#include "sim/records/run.h"

namespace lockstep::runner {

/// What all workers together saw of their servers in their timed steps; `exchanges` and `steps` are
/// this worker's. All ranks call, and get the same.
ServerStatistics server_statistics(Worker& worker, const std::vector<ServerExchange>& exchanges,
                                   const std::vector<TimedStep>& steps, int servers, int batch);

}  // namespace lockstep::runner
