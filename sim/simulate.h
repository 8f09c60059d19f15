#pragma once

#include <functional>

#include "sim/records/calibration.h"
#include "sim/records/result.h"
#include "sim/records/timeline.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

/// Answers a scenario: one point for each number of workers, in the order of the scenario. Pure:
/// equal input, equal result to the bit, on any number of threads (0: one for each core). Throws
/// InputError where the calibration cannot answer. `after_point`, if any, is called after every
/// point, by several threads at once.
Prediction simulate(const Scenario& scenario, const Calibration& calibration, unsigned threads = 0,
                    const std::function<void()>& after_point = {});

/// One steady step of every worker, from its earliest start: what a trace shows.
Timeline simulate_step(const Scenario& scenario, const Calibration& calibration, int workers);

}  // namespace lockstep
