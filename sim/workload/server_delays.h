#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/time.h"
#include "sim/workload/server_system.h"

namespace lockstep {

/// What delays workers of a parameter server, iteration by iteration.
class ServerDelays {
 public:
  explicit ServerDelays(const ServerSystem& system);  ///< outlives it

  /// For how long a worker stops that begins its `iteration` now: all its delays together. Each
  /// worker asks once an iteration, in their order. InputError beyond half of what the clock holds.
  Time next(std::uint32_t worker, std::uint32_t iteration, Time now);

 private:
  const ServerSystem& system_;
  /// By worker and delay: when pauses by the clock were last looked for.
  std::vector<std::vector<Time>> passed_;
};

}  // namespace lockstep
