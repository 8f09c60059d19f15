// What a worker of a parameter server computes: the servers hold the optimizer. What it exchanges
// with them depends on when the others do: server_system.h.
#include "sim/workload/strategy.h"

namespace lockstep {

void write_parameter_server(WorkerProgram& worker, const Workload& /*workload*/, Phase /*phase*/) {
  worker.forward();
  worker.backward();
}

}  // namespace lockstep
