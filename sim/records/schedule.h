#pragma once

#include <string>

#include "sim/collectives/schedule.h"

namespace lockstep {

/// {format, kind: "collective", collective, algorithm, ranks, root (null where it has none),
/// per_host, bytes, steps, time_ns (null unless timed), chunks: [bytes], messages: {columns,
/// rows}}: steps, ranks and chunks from 0, times in whole nanoseconds (zero unless timed).
void write_schedule(const Schedule& schedule, const std::string& file);

}  // namespace lockstep
