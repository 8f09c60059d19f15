#include "calibration/speed.h"

#include "sim/core/units.h"

namespace lockstep {

Time Speed::normalised(Time time, const SpeedIndex& index) const {
  if (!drifts_ || index.before <= Time{} || index.after <= Time{}) return time;
  const Time around = index.before + index.after;
  return Time::picoseconds(multiply_divide(time.ps(), reference_.ps() * 2, around.ps()));
}

double Speed::slowdown(const SpeedIndex& index) const {
  constexpr Time kUnit = Time::nanoseconds(1'000'000'000);
  return kUnit.seconds() / normalised(kUnit, index).seconds();
}

}  // namespace lockstep
