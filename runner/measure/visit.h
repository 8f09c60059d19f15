#pragma once

#include "runner/measure/worker.h"

namespace lockstep::runner {

/// Everything one repeat measures, in an order that lets drift cancel: for each configuration,
/// profiles and runs in short blocks by turns, the reference kernel around each; then the machine's
/// tables. Saves after each. With a calibration there are only the runs; or, where that is all
/// that is wanted, collectives.
void measure_all(Worker& worker);

/// What a worker waits for in a replay, `beside` workers on its host, all of it `slow_motion` times
/// as long. InputError where the calibration knows no such model, or not at this precision.
Profile profile_to_replay(const Calibration& calibration, const std::string& model,
                          Precision precision, int batch, int beside, int slow_motion);

}  // namespace lockstep::runner
