#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/engine.h"
#include "sim/core/task_graph.h"

namespace lockstep {

/// A graph in which one worker stands for every class of workers that cannot be told apart: same
/// program, same slow-downs, no noise. Running it gives the representative's part of what the full
/// graph gives, to the picosecond.
struct ReducedRun {
  TaskGraph graph;
  EngineOptions options;
  std::vector<std::uint32_t> class_of_worker;  ///< worker of `graph` that stands for each
};

/// Where noise is drawn, or what slows workers, each for itself, some are backups, or a collective
/// runs step by step over links that ranks do not share evenly, every worker is a class of its own.
/// Collectives by table only need their last launch, which is the last launch of a class. A ring
/// all-reduce step by step is reduced where all ranks are one class, all chunks and hops are equal
/// and no two hops share a link: then no rank ever waits for another, and its time is a sum of
/// message times.
ReducedRun reduce_symmetric(const TaskGraph& graph, const EngineOptions& options);

}  // namespace lockstep
