// One all-reduce for each parameter, in the order of the parameters, after backward: a loop over
// model.parameters(). The calls are queued one behind the other; the optimizer waits for all.
#include "sim/workload/strategy.h"

namespace lockstep {

void write_all_reduce(WorkerProgram& worker, const Workload& /*workload*/, Phase /*phase*/) {
  const Profile& profile = worker.profile();
  worker.forward();
  worker.backward();
  for (const Layer& layer : profile.layers) {
    for (const Parameter& parameter : layer.parameters) {
      worker.collective(parameter.name, CollectiveKind::all_reduce, parameter.bytes);
    }
  }
  worker.join();
  worker.optimizer();
}

}  // namespace lockstep
