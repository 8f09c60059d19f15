#pragma once

#include <memory>
#include <vector>

#include "sim/core/engine.h"
#include "sim/platform/network.h"
#include "sim/records/calibration.h"
#include "sim/records/result.h"
#include "sim/scenario/scenario.h"
#include "sim/workload/workload.h"

namespace lockstep {

/// A scenario at one number of workers, as a workload and the options of its run. Refers to the
/// calibration it was made from, which must outlive it.
struct Point {
  int workers = 1;
  Workload workload;
  std::vector<Slowdown> slowdowns;              ///< by worker
  std::vector<std::vector<DrawnFactor>> drawn;  ///< that they refer to
  std::unique_ptr<Network> network;             ///< where collectives run step by step
  Basis basis = Basis::measured;                ///< of the profiles
};

/// One worker runs `single`, whatever the strategy, but one with servers. Among many workers a
/// collective over a network takes its formula's time instead of being run step by step. Throws
/// InputError where the calibration lacks the model or the collectives.
Point make_point(const Scenario& scenario, const Calibration& calibration, int workers);

/// What the costs of these collectives rest on.
Basis collective_basis(const Scenario& scenario, const Calibration& calibration, int workers,
                       const std::vector<Collective>& collectives);

}  // namespace lockstep
