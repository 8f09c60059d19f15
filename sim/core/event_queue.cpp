#include "sim/core/event_queue.h"

#include "sim/core/error.h"

namespace lockstep {

void refuse_beyond_horizon() {
  throw InputError({}, "engine", "simulated time runs over 53 days",
                   "check the units of the work, or simulate fewer iterations");
}

}  // namespace lockstep
