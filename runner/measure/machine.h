#pragma once

#include "runner/measure/worker.h"

namespace lockstep::runner {

/// The machine's tables, once per repeat: collectives by size, copies into buckets, interference
/// between compute and collectives, and how workers slow each other.
void measure_machine(Worker& worker);

/// Of these, collectives by size. Between hosts, where a link and not the cores take the time, the
/// machine's speed is left out of it.
void measure_collectives(Worker& worker);

}  // namespace lockstep::runner
