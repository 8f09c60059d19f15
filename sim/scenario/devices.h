#pragma once

#include <vector>

#include "sim/core/time.h"
#include "sim/records/calibration.h"
#include "sim/records/result.h"
#include "sim/scenario/fields.h"
#include "sim/scenario/scenario.h"
#include "sim/workload/workload.h"

namespace lockstep {

/// Readers of `strategy.split` and `strategy.combine`, and of `devices`; then what they must be
/// together. All throw InputError.
void read_split(Fields& strategy, Scenario& scenario);
void read_devices(Fields& top, Scenario& scenario);
void check_devices(const Scenario& scenario);

/// Where a worker stands among the devices of its host.
struct DevicePlace {
  std::size_t device_class = 0;  ///< index in Scenario::devices
  int in_class = 0;              ///< of this host's
};
/// Needs devices.
DevicePlace device_place(const Scenario& scenario, int rank);

/// The costs of a worker: its class's, else `main`. One worker alone always has those of `main`.
/// Throws InputError where a class's calibration was not read.
const Calibration& costs_of(const Scenario& scenario, const Calibration& main, int workers,
                            int rank);

/// How a worker among devices of several classes takes part in combining gradients of `bytes`; see
/// sim/workload/heterogeneous.cpp. Throws InputError where the calibrations lack the copies, or
/// there is more than one worker on cores.
UnlikeWorker unlike_worker(const Scenario& scenario, const Calibration& main, int rank,
                           Bytes bytes);
/// The reduction between those who hold sums, and what it rests on.
struct BetweenSums {
  CollectiveCost cost;
  Basis basis = Basis::measured;
};
BetweenSums between_sums(const Scenario& scenario, const Calibration& main, int workers,
                         Bytes bytes);

/// From the last gradient to the sum on all devices, nobody being late.
Time combine_time(const Scenario& scenario, const Calibration& main, int workers, Bytes bytes);

}  // namespace lockstep
