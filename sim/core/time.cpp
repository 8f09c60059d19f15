#include "sim/core/time.h"

#include <cmath>
#include <stdexcept>

namespace lockstep {

Time Time::from_seconds(double seconds) {
  const double ps = seconds * 1e12;
  // 2^63 as a double; NaN fails both comparisons.
  if (!(ps > -0x1p63 && ps < 0x1p63)) {
    throw std::invalid_argument("a time must be a number within 106 days");
  }
  return picoseconds(std::llround(ps));
}

}  // namespace lockstep
