#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/analysis/split.h"
#include "sim/records/calibration.h"
#include "sim/records/result.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

/// What each device of a host takes alone for a share of the batch: its step as `single`,
/// stragglers at their means, and the copies that it makes of gradients. A ShareTime that
/// remembers.
class DeviceTimes {
 public:
  /// Scenario and calibration must outlive it.
  DeviceTimes(const Scenario& scenario, const Calibration& calibration, int workers);

  std::size_t devices() const { return devices_; }
  int samples() const { return samples_; }  ///< of a host
  Time operator()(std::size_t device, int samples) const;

 private:
  Time simulated(std::size_t device, int samples) const;

  const Scenario& scenario_;
  const Calibration& calibration_;
  std::size_t devices_;
  int samples_;
  mutable std::map<std::pair<std::size_t, int>, Time> known_;
};

/// The scenario with the shares at which its workers' steps agree, where it asks for them.
Scenario with_split(const Scenario& scenario, const Calibration& calibration, int workers);

/// The same workers but some, each with its best share.
struct SplitChoice {
  std::string without;  ///< who is left out; empty: nobody
  int workers = 1;
  std::vector<int> shares;  ///< of a host
  ResultPoint point;
};

/// Where gradients are added, for arrays of a size.
struct CombineTimes {
  Time on_device, on_host;
};

/// What `lockstep split` says of a scenario.
struct SplitAnswer {
  int workers = 1;
  int samples = 0;                   ///< of a host
  std::vector<std::string> devices;  ///< of a host
  std::vector<SplitRound> rounds;    ///< balancing by measured speeds
  SplitRound best;
  std::vector<SplitChoice> choices;  ///< first all workers
  /// Of steps at the best split: their mean, and what it would be were every worker at its mean.
  Time varying, steady;
  std::optional<CombineTimes> combine;  ///< with a worker on cores among GPUs
  std::optional<Bytes> overtakes;       ///< the size at which the slower way becomes the faster
};

/// Of the scenario's largest number of workers. Throws InputError where it is not heterogeneous.
SplitAnswer find_split(const Scenario& scenario, const Calibration& calibration);

}  // namespace lockstep
