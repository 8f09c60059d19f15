#pragma once

#include <span>
#include <string>

#include "sim/records/timeline.h"

namespace lockstep {

/// A timeline and what to call its workers: "simulated", "measured".
struct NamedTimeline {
  std::string name;
  Timeline spans;
};

/// Chrome's trace format, which Perfetto opens: a process for every worker of every timeline, one
/// below the other, and a thread for each of its lanes.
std::string to_chrome_trace(std::span<const NamedTimeline> timelines);

}  // namespace lockstep
