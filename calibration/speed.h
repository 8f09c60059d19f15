#pragma once

#include "sim/core/time.h"
#include "sim/records/origin.h"

namespace lockstep {

/// The speed that times of one visit are compared at. Cores of a shared machine drift, and the
/// reference kernel around each block says by how much: t * reference / mean(before, after). Times
/// of machines with GPUs stay as they are: a card's clock is its own, and the index would also take
/// away by how much one card is really slower than the next.
class Speed {
 public:
  Speed(Time reference, const Machine& machine)
      : reference_(reference), drifts_(machine.gpus.empty() && reference > Time{}) {}

  Time normalised(Time time, const SpeedIndex& index) const;
  /// How many times as long as at calibration the reference kernel took; 1 where nothing drifts.
  double slowdown(const SpeedIndex& index) const;
  bool drifts() const { return drifts_; }

 private:
  Time reference_;
  bool drifts_;
};

}  // namespace lockstep
