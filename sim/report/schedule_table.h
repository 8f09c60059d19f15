#pragma once

#include <optional>
#include <string>

#include "sim/collectives/schedule.h"

namespace lockstep {

/// A schedule for people: every message on a line (of many, every step), and what it comes to in
/// steps, bytes and, where it is timed, time: beside `by_formula`, where there is one.
std::string to_table(const Schedule& schedule, const std::optional<Time>& by_formula);

/// Chrome's trace format, which Perfetto opens: a process for every rank, its messages to and from
/// each peer on lanes, an arrow from each sender to its receiver. The schedule must be timed.
std::string to_chrome_trace(const Schedule& schedule);

}  // namespace lockstep
