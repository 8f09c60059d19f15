#pragma once

#include "sim/core/engine.h"
#include "sim/records/calibration.h"
#include "sim/records/result.h"
#include "sim/records/timeline.h"
#include "sim/scenario/point.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

/// A point of a parameter server. What each worker computes comes from the engine, with `options`;
/// when it exchanges with servers, and what waits for what, from a ServerSystem. A step is an
/// iteration of one worker: its quantiles are over all workers, its breakdown is that of the worker
/// with the longest mean. Throughput is the sum over workers. Lacks memory, speed-up and epochs.
ResultPoint simulate_servers(const Scenario& scenario, const Calibration& calibration,
                             const Point& point, const EngineOptions& options);

/// One iteration of every worker; servers stand behind the workers.
Timeline server_timeline(const Scenario& scenario, const Calibration& calibration,
                         const Point& point, const EngineOptions& options);

}  // namespace lockstep
