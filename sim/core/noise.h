#pragma once

#include <cstdint>

#include "sim/core/engine.h"
#include "sim/core/random.h"
#include "sim/core/units.h"

namespace lockstep {

/// By how much work takes longer (or shorter) than the graph says: constant slow-downs and drawn
/// noise. A pure function of the options and the key of the work.
class WorkFactors {
 public:
  explicit WorkFactors(const EngineOptions& options);

  /// True where any factor differs from one.
  bool vary() const { return vary_; }
  bool vary_by_task() const { return task_.varies(); }

  /// Of all work of a worker in one iteration, on host and loader lanes, or on device lanes:
  /// ((slow-down x process) x step) x what is drawn for a straggler.
  Slowdown worker(std::uint32_t worker, std::uint32_t iteration) const;
  Factor task(std::uint32_t worker, std::uint32_t iteration, std::uint32_t task) const {
    return task_.draw({seed_, worker, iteration, task});
  }
  /// Collectives take part in noise by task only: their time is no single worker's.
  Factor collective(std::uint32_t iteration, std::uint32_t collective) const {
    return task_.draw({seed_, kWhole, iteration, collective});
  }

 private:
  const std::vector<Slowdown>& slowdowns_;
  const std::vector<std::vector<DrawnFactor>>& drawn_;
  std::uint64_t seed_;
  LogNormal process_, step_, task_;
  bool vary_ = false;
};

}  // namespace lockstep
