#pragma once

#include <vector>

#include "sim/core/time.h"
#include "sim/records/calibration.h"
#include "sim/records/measurement.h"
#include "sim/records/origin.h"

namespace lockstep {

/// How far steps follow the reference kernel: the slope of log(step) over log(index), 0 to 1, each
/// model, batch, neighbours and rank about its own mean over the processes. The index is a sample
/// of a speed that changes within a block, so part of it is noise, which must not be taken out of
/// steps (regression dilution). 1 where the index does not vary or too few processes were measured.
double fit_drift_exponent(const std::vector<ProfileSample>& samples);

/// The speed that times of one visit are compared at. Cores of a shared machine drift, and the
/// reference kernel around each block says by how much: t * (reference / mean(before, after)) to
/// the power of the drift exponent. Times of machines with GPUs stay as they are: a card's clock is
/// its own, and the index would also take away by how much one card is really slower than the next.
class Speed {
 public:
  Speed(Time reference, const Machine& machine, double exponent = 1)
      : reference_(reference),
        drifts_(machine.gpus.empty() && reference > Time{}),
        exponent_(exponent) {}
  explicit Speed(const Calibration& calibration)
      : Speed(calibration.reference, calibration.origin.machine, calibration.drift_exponent) {}

  /// How many times as long as at calibration a step takes; 1 where nothing drifts.
  double slowdown(const SpeedIndex& index) const;
  Time normalised(Time time, const SpeedIndex& index) const;
  bool drifts() const { return drifts_; }
  double exponent() const { return exponent_; }

 private:
  Time reference_;
  bool drifts_;
  double exponent_;
};

}  // namespace lockstep
