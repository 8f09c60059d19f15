#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/task_graph.h"
#include "sim/core/time.h"

namespace lockstep {

/// One stretch of work on one lane of one worker; simulator and runner both produce it.
struct Span {
  std::uint32_t worker = 0;
  Lane lane = Lane::compute;
  TaskKind kind = TaskKind::mark;
  std::uint32_t iteration = 0;
  std::string name;
  Time start, end;
};

using Timeline = std::vector<Span>;

}  // namespace lockstep
