#pragma once

#include <optional>
#include <string>

#include "runner/measure/worker.h"

namespace lockstep::runner {

struct Configuration {
  std::string model;
  int batch = 0;
  bool single = true, ddp = true;
  std::optional<Parity> parity;
  Moment budget = 0;  ///< ns; 0: until every run has its steps
};

/// Profiles one model at one batch, alone and beside the other workers, and runs the strategies, in
/// rounds of short blocks; adds profiles and runs to the worker's part.
void measure_configuration(Worker& worker, const Configuration& configuration);

}  // namespace lockstep::runner
