#pragma once

#include "runner/measure/worker.h"

namespace lockstep::runner {

/// The machine's tables, once per repeat: collectives by size, copies into buckets, interference
/// between compute and collectives, and how workers slow each other.
void measure_machine(Worker& worker);

}  // namespace lockstep::runner
