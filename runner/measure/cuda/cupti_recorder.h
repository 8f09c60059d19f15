#pragma once

#include <vector>

#include "runner/measure/layer_costs.h"

namespace lockstep::runner {

/// Records what the device does between start() and stop(), through CUPTI's activity records. It
/// slows the host by half or more: durations can be used, gaps cannot. One at a time per process.
class CuptiRecorder {
 public:
  /// Throws RunError where CUPTI refuses (another profiler, no permission).
  void start();
  /// Waits for the device; returns the work in order of its start.
  std::vector<DeviceWork> stop();
};

}  // namespace lockstep::runner
