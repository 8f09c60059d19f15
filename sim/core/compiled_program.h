#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/core/task_graph.h"

namespace lockstep {

/// A successor and its lane in one word.
inline constexpr int kLaneShift = 29;
inline constexpr std::uint32_t kTaskMask = (std::uint32_t{1} << kLaneShift) - 1;

/// What the engine reads of a task, in half a cache line.
struct CompiledTask {
  std::int64_t work = 0;  ///< below zero: -1 - index in TaskGraph::delays
  std::uint32_t first_successor = 0, last_successor = 0;
  std::uint32_t dependencies = 0;
  std::int32_t collective = kNoCollective;
  std::uint32_t frees = 0;  ///< kernels it takes off the launch queue when it ends
  std::uint16_t launches = 0;
  std::uint16_t interference = 0;  ///< zero off the compute lane
};
static_assert(sizeof(CompiledTask) == 32);

struct CompiledProgram {
  std::vector<CompiledTask> tasks;
  std::vector<std::uint32_t> successors;  ///< lane << kLaneShift | task
  std::array<std::uint32_t, kLanes + 1> lane_begin{};
};

/// The graph must be valid.
CompiledProgram compile(const TaskGraph& graph, const Program& program);

}  // namespace lockstep
