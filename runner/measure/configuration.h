#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runner/measure/worker.h"

namespace lockstep::runner {

struct Configuration {
  std::string model;
  int batch = 0;
  bool single = true;
  std::vector<StrategyOptions> shared;   ///< strategies of all workers together
  std::map<std::string, Parity> parity;  ///< by strategy
  std::optional<Profile> replay;         ///< waited for instead of computing
  std::optional<Profile> replay_alone;   ///< the same of `single`
  Moment budget = 0;                     ///< ns; 0: until every run has its steps
};

/// Profiles one model at one batch, alone and beside the other workers, and runs the strategies, in
/// rounds of short blocks; adds profiles and runs to the worker's part. With a
/// calibration there are only the runs.
void measure_configuration(Worker& worker, const Configuration& configuration);

}  // namespace lockstep::runner
