#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/engine.h"
#include "sim/core/task_graph.h"

namespace lockstep {

/// A task on the critical path; of a collective, its transfer (what came before is on the path of
/// the rank that launched last).
struct PathStep {
  std::uint32_t worker = 0;
  std::uint32_t iteration = 0;
  std::uint32_t task = 0;
  Time start, end;
};

/// The chain of tasks, each starting when the one before it ends, that ends with the last task of
/// this iteration, over all workers; back to where the iteration before had ended. Tasks that take
/// no time are left out. `result` must hold spans, and collectives that were not run step by step.
std::vector<PathStep> critical_path(const TaskGraph& graph, const EngineResult& result,
                                    std::uint32_t iteration);

}  // namespace lockstep
