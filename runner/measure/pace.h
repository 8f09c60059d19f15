#pragma once

#include "runner/measure/device.h"

namespace lockstep::runner {

/// Returns at `deadline`, host time, or at once where it has passed. Sleeps until `spin` before it
/// and then looks at the clock: a timer wakes a thread some ten microseconds late.
void wait_until(Moment deadline, Moment spin);

/// Lets time pass as if work were done, without taking a core. What one wait was too long is taken
/// from the next ones, so that many short ones add up to what they should.
class Pace {
 public:
  explicit Pace(Moment spin) : spin_(spin) {}
  /// Nanoseconds from now on, or less, by what is owed.
  void pass(Moment duration);
  /// Nothing is owed any more.
  void settle() { owed_ = 0; }

 private:
  Moment spin_;
  Moment owed_ = 0;  ///< that was waited too long
};

/// How long a worker may look at the clock: next to nothing where others want its core.
Moment spin_time(int workers_on_host, int cores);

}  // namespace lockstep::runner
