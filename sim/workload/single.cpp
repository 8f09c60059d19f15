// One worker alone, or several that never exchange anything.
#include "sim/workload/strategy.h"

namespace lockstep {

void write_addition(WorkerProgram& worker, const Workload& workload, const std::string& name,
                    Bytes bytes) {
  if (bytes == Bytes{}) return;
  worker.work(TaskKind::reduce, name, copy_cost(workload.add, bytes), "bucket_copy");
}

void write_additions(WorkerProgram& worker, const Workload& workload, const Layer& layer) {
  for (const Parameter& parameter : layer.parameters) {
    write_addition(worker, workload, parameter.name + " accumulate", parameter.bytes);
  }
}

void write_backward_alone(WorkerProgram& worker, const Workload& workload, bool first) {
  worker.backward([&](const Layer& layer) {
    if (!first) write_additions(worker, workload, layer);
  });
}

void write_single(WorkerProgram& worker, const Workload& workload, Phase /*phase*/) {
  for (int pass = 0; pass < workload.strategy.accumulate; ++pass) {
    if (pass > 0) worker.begin_pass();
    worker.forward();
    write_backward_alone(worker, workload, pass == 0);
  }
  worker.optimizer();
}

}  // namespace lockstep
