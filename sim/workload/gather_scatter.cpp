// For each parameter, in the order of the parameters, after backward: everybody's gradient goes to
// rank 0, which adds them and sends the sum to all. (Gradients are scaled by 1/n when the loss is,
// so the sum is the mean.) Rank 0 waits for each gather; the others queue everything and wait once.
#include "sim/workload/strategy.h"

namespace lockstep {
namespace {

/// What adding the gradients of all others to its own takes.
Cost sum_cost(const Workload& workload, Bytes bytes) {
  const auto others = static_cast<std::int64_t>(workload.profile_of_worker.size()) - 1;
  Cost one = copy_cost(workload.add, bytes);
  return {.host = one.host * others,
          .device = one.device * others,
          .launches = one.launches * static_cast<int>(others)};
}

void average(WorkerProgram& worker, const Workload& workload, const Parameter& parameter) {
  worker.collective("gather " + parameter.name, CollectiveKind::gather, parameter.bytes);
  if (worker.is_root()) {
    worker.join();
    worker.work(TaskKind::reduce, "add " + parameter.name, sum_cost(workload, parameter.bytes),
                "bucket_copy");
  }
  worker.collective("scatter " + parameter.name, CollectiveKind::scatter, parameter.bytes);
}

}  // namespace

void write_gather_scatter(WorkerProgram& worker, const Workload& workload, Phase /*phase*/) {
  const Profile& profile = worker.profile();
  worker.forward();
  worker.backward();
  for (const Layer& layer : profile.layers) {
    for (const Parameter& parameter : layer.parameters) average(worker, workload, parameter);
  }
  worker.join();
  worker.optimizer();
}

}  // namespace lockstep
