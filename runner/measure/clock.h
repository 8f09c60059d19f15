#pragma once

#include <chrono>

#include "runner/measure/device.h"

namespace lockstep::runner {

/// The host's monotonic clock in nanoseconds; the same for all processes of a host.
inline Moment host_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace lockstep::runner
