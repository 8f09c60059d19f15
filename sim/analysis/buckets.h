#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/engine.h"
#include "sim/core/task_graph.h"
#include "sim/records/run.h"

namespace lockstep {

/// All-reduces of one worker, or its gathers each with the scatter behind it, in its last recorded
/// step, from the start of that step (the end of the
/// one before): ready when the bucket's last gradient was, before it was copied in. `result` must
/// hold spans.
std::vector<BucketTimes> bucket_times(const TaskGraph& graph, const EngineResult& result,
                                      std::uint32_t worker);

}  // namespace lockstep
