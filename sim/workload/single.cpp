// One worker alone, or several that never exchange anything.
#include "sim/workload/strategy.h"

namespace lockstep {

void write_single(WorkerProgram& worker, const Workload& /*workload*/, Phase /*phase*/) {
  const Profile& profile = worker.profile();
  worker.forward();
  for (std::uint32_t layer : backward_order(profile)) worker.backward(profile.layers[layer]);
  worker.optimizer();
}

}  // namespace lockstep
