#pragma once

#include <cstdint>

#include "sim/core/engine.h"
#include "sim/core/task_graph.h"
#include "sim/records/timeline.h"

namespace lockstep {

/// Spans of all workers in one iteration, from the earliest start; tasks that take no time are left
/// out. A collective that waits for a peer is two spans: the waiting, and the transfer.
Timeline step_timeline(const TaskGraph& graph, const EngineResult& result, std::uint32_t iteration);

}  // namespace lockstep
