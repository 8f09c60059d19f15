#pragma once

#include "runner/measure/worker.h"

namespace lockstep::runner {

/// Everything one repeat measures, in an order that lets drift cancel: for each configuration,
/// profiles and runs in short blocks by turns, the reference kernel around each; then the machine's
/// tables. Saves after each.
void measure_all(Worker& worker);

}  // namespace lockstep::runner
