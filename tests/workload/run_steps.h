#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/core/engine.h"

namespace lockstep {

/// With spans, without noise.
inline EngineResult run_steps(const TaskGraph& graph, std::uint32_t iterations,
                              std::vector<Slowdown> slowdowns = {}) {
  EngineOptions options;
  options.iterations = iterations;
  options.record_spans = true;
  options.slowdowns = std::move(slowdowns);
  return run(graph, options);
}

}  // namespace lockstep
