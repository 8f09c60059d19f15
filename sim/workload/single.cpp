// One worker alone, or several that never exchange anything.
#include "sim/workload/strategy.h"

namespace lockstep {

void write_single(WorkerProgram& worker, const Workload& /*workload*/, Phase /*phase*/) {
  worker.forward();
  worker.backward();
  worker.optimizer();
}

}  // namespace lockstep
