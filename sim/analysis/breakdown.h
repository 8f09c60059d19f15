#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/engine.h"
#include "sim/core/task_graph.h"
#include "sim/records/result.h"

namespace lockstep {

/// Where one step of one worker went, and how long its host lane was busy in it.
struct StepParts {
  Breakdown breakdown;
  Time host_busy;
};

/// Step k of a worker lasts from the end of its step k - 1 (time zero for the first) to the end of
/// step k; the parts of each add up to it exactly. While the compute lane is busy it is compute,
/// or input where the worker itself loads a batch on it.
/// While it is not: its next task not issued -> host; else a collective launched but a peer missing
/// -> waiting; transferring -> exposed; the next task's batch not there -> input; else idle.
/// `result` must hold spans.
std::vector<StepParts> break_down(const TaskGraph& graph, const EngineResult& result,
                                  std::uint32_t worker);

/// The same between other ends, ascending: of steps over all workers, for example, the last of
/// which is not before the worker's own. After the worker's own last step it waits for the others.
std::vector<StepParts> break_down(const TaskGraph& graph, const EngineResult& result,
                                  std::uint32_t worker, const std::vector<Time>& ends);

/// How long the worker's host lane issues in a step between these ends: the mean over steps
/// [first, end).
Time host_busy(const TaskGraph& graph, const EngineResult& result, std::uint32_t worker,
               const std::vector<Time>& ends, std::size_t first);

/// Mean over steps [first, end), rounded so that the parts add up to the mean of the steps.
StepParts mean_parts(const std::vector<StepParts>& steps, std::size_t first);

}  // namespace lockstep
