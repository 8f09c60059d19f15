// One worker alone, or several that never exchange anything.
#include "sim/workload/strategy.h"

namespace lockstep {

void write_addition(WorkerProgram& worker, const Workload& workload, const std::string& name,
                    Bytes bytes) {
  if (bytes == Bytes{}) return;
  worker.work(TaskKind::reduce, name, copy_cost(workload.add, bytes), "bucket_copy");
}

void write_backward_alone(WorkerProgram& worker, const Workload& workload, bool first) {
  worker.backward([&](const Layer& layer) {
    if (first) return;
    write_addition(worker, workload, layer.name + " accumulate", parameter_bytes(layer));
  });
}

void write_single(WorkerProgram& worker, const Workload& workload, Phase /*phase*/) {
  for (int pass = 0; pass < workload.strategy.accumulate; ++pass) {
    worker.forward();
    write_backward_alone(worker, workload, pass == 0);
  }
  worker.optimizer();
}

}  // namespace lockstep
