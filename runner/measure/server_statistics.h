#pragma once

#include <vector>

#include "runner/communicators/communicator.h"
#include "runner/measure/device.h"
#include "runner/strategies/strategy.h"
#include "sim/records/run.h"

namespace lockstep::runner {

/// What one worker saw of its servers in its timed steps.
struct SeenOfServers {
  std::vector<ServerExchange> exchanges;
  std::vector<Moment> steps;  ///< nanoseconds each
  int servers = 1;
  int batch = 1;   ///< of the worker
  Bandwidth link;  ///< of each host; zero: not known, or all are on one host
};

/// What all workers together saw. All ranks call, and get the same; `communicator`: null alone.
ServerStatistics server_statistics(const SeenOfServers& mine, Communicator* communicator,
                                   c10::Device device);

}  // namespace lockstep::runner
