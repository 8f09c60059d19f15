// Unlike workers share a batch: the slower ones take fewer samples, and gradients weigh by their
// share n_i / N, which scaling the loss does at no cost. After backward all gradients are combined
// at once. Workers of one kind reduce them among themselves. A worker on cores among GPUs (Choi
// 2019):
//   strategy 1, combined on the host: the GPUs' gradients are copied to host memory and added
//   there,
//     the hosts reduce the sums among themselves, and each GPU copies the sum back;
//   strategy 2, combined on the device: the gradients of the cores are copied to one GPU and added
//     there, the GPUs reduce among themselves, and the cores copy the sum back.
// That a sum has all it needs is a rendezvous that takes no time of its own; all hosts keep it
// together, which changes nothing, since they go on with a collective of all. The host of a GPU
// waits for what another process puts into host memory before it launches what copies that in.
#include "sim/workload/strategy.h"

namespace lockstep {
namespace {

/// Into one flat array, and from there to all.
void combine_alike(WorkerProgram& worker, const Workload& workload, Bytes bytes) {
  worker.work(TaskKind::bucket_copy, "copy gradients", copy_cost(workload.bucket_in, bytes),
              "bucket_copy");
  worker.collective("gradients", CollectiveKind::all_reduce, bytes);
  worker.join();
}

void work_if_any(WorkerProgram& worker, TaskKind kind, const char* name, const Cost& cost) {
  if (cost.device > Time{} || cost.host > Time{}) worker.work(kind, name, cost, "bucket_copy");
}

void combine_unlike(WorkerProgram& worker, const Workload& workload, const UnlikeWorker& part,
                    Bytes bytes) {
  work_if_any(worker, TaskKind::bucket_copy, "copy gradients", part.pack);
  work_if_any(worker, TaskKind::bucket_copy, "gradients to the sum", part.to_sum);
  const bool on_host = workload.strategy.combine_on_host;
  const char* there = "gradients are there";
  if (on_host) {
    worker.collective(there, CollectiveKind::gather, bytes);
    worker.join();
  } else {
    // GPUs have nothing to give: only the cores' gradients are waited for.
    worker.collective_of_host(there, CollectiveKind::gather, bytes);
    if (part.adds) {
      worker.join_host();
    } else {
      worker.join();
    }
  }
  work_if_any(worker, TaskKind::reduce, "add gradients", part.sum);
  worker.collective("sums", CollectiveKind::all_reduce, bytes);
  if (on_host) {
    worker.join_host();
  } else {
    worker.join();
  }
  work_if_any(worker, TaskKind::bucket_copy, "sum from there", part.from_sum);
}

}  // namespace

void write_heterogeneous(WorkerProgram& worker, const Workload& workload, Phase /*phase*/) {
  const Bytes bytes = parameter_bytes(worker.profile());
  worker.forward();
  worker.backward();
  if (const UnlikeWorker* part = worker.unlike()) {
    combine_unlike(worker, workload, *part, bytes);
  } else {
    combine_alike(worker, workload, bytes);
  }
  worker.optimizer();
}

}  // namespace lockstep
