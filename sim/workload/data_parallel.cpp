// nn.DataParallel: one process, a thread for each device. Every forward begins with sending out the
// parameters, and only device 0 has an optimizer; nothing that is exchanged is hidden.
//
// One worker of the graph is one device and the thread that drives it; worker 0's is also the main
// thread, which issues all that devices exchange, the loss and the optimizer. The other threads
// wait for it meanwhile: their host lanes hold the same calls, without the work. So a thread may
// begin its next step earlier than the main thread lets it, by the time that the optimizer takes on
// device 0. Its device waits for the next broadcast all the same.
#include <fmt/core.h>

#include <string>
#include <vector>

#include "sim/workload/buckets.h"
#include "sim/workload/strategy.h"

namespace lockstep {
namespace {

bool is_loss(const Layer& layer) {
  return layer.kind == "loss";
}

/// What the loss reads, of one device's share of the batch.
Bytes output_bytes(const Profile& profile) {
  Bytes output;
  for (const Layer& layer : profile.layers) {
    if (!is_loss(layer)) output = layer.output;
  }
  return output;
}

class OneProcess {
 public:
  OneProcess(WorkerProgram& worker, const Workload& workload)
      : worker_(worker),
        workload_(workload),
        gradients_(gradients_of(parameters_of(worker.profile()))),
        devices_(static_cast<std::int64_t>(workload.profile_of_worker.size())) {}

  /// Batches that are loaded go from host memory to each device; begin_step has copied them.
  void scatter_inputs() {
    if (workload_.input) return;
    exchange("inputs", CollectiveKind::scatter, worker_.profile().input_bytes);
  }

  void replicate() {
    const std::vector<Bytes> caps{kChunkLimit};
    int index = 0;
    for (const Bucket& chunk : assign_buckets(gradients_, caps)) {
      const std::string name = fmt::format("parameters {}", index++);
      if (chunk.size() > 1) {
        on_root(TaskKind::bucket_copy, name + " copy",
                copy_cost(workload_.bucket_in, bytes_of(chunk, gradients_)), "bucket_copy");
      }
      exchange(name, CollectiveKind::broadcast, bytes_of(chunk, gradients_));
    }
    worker_.broadcast_buffers();
  }

  void forward() {
    worker_.begin_part(StepPart::forward);
    for (const Layer& layer : worker_.profile().layers) {
      if (is_loss(layer) || layer.forward == Cost{}) continue;
      Cost cost = layer.forward;
      if (workload_.strategy.gil) cost.host = cost.host * devices_;
      worker_.work(TaskKind::forward, layer.name, cost, layer.kind);
    }
  }

  void loss() {
    exchange("outputs", CollectiveKind::gather, output_bytes(worker_.profile()));
    for (const Layer& layer : worker_.profile().layers) {
      if (is_loss(layer)) on_root(TaskKind::forward, layer.name, of_all(layer.forward), layer.kind);
    }
  }

  /// Autograd has a thread for each device, in Python too.
  void backward() {
    worker_.begin_part(StepPart::backward);
    const Profile& profile = worker_.profile();
    for (const Layer& layer : profile.layers) {
      if (is_loss(layer)) {
        on_root(TaskKind::backward, layer.name, of_all(layer.backward), layer.kind);
      }
    }
    exchange("output gradients", CollectiveKind::scatter, output_bytes(profile));
    for (const std::uint32_t index : backward_order(profile)) {
      const Layer& layer = profile.layers[index];
      if (is_loss(layer) || layer.backward == Cost{}) continue;
      worker_.work(TaskKind::backward, layer.name, layer.backward, layer.kind);
    }
  }

  void reduce() {
    int index = 0;
    for (const Bucket& chunk : take_chunks(gradients_, kChunkLimit)) {
      const std::string name = fmt::format("gradients {}", index++);
      if (chunk.size() > 1) {
        Cost copy = copy_cost(workload_.bucket_in, bytes_of(chunk, gradients_));
        copy.host = copy.host * devices_;  // one thread launches it on every device
        worker_.work(TaskKind::bucket_copy, name + " copy", copy, "bucket_copy");
      }
      exchange(name, CollectiveKind::reduce, bytes_of(chunk, gradients_));
    }
  }

  void optimizer() {
    on_root(TaskKind::optimizer, "optimizer", worker_.profile().optimizer, "optimizer");
  }

 private:
  /// Of the outputs of all devices, on one: as many launches, which read as many times the bytes.
  Cost of_all(Cost one) const {
    one.device = one.device * devices_;
    return one;
  }

  void on_root(TaskKind kind, const std::string& name, const Cost& cost,
               const std::string& layer_kind) {
    if (cost == Cost{}) return;
    if (worker_.is_root()) {
      worker_.work(kind, name, cost, layer_kind);
    } else {
      worker_.call(cost.host, {});
    }
  }

  /// In the stream that computes.
  void exchange(const std::string& name, CollectiveKind kind, Bytes bytes) {
    worker_.collective(name, kind, bytes);
    worker_.join();
  }

  WorkerProgram& worker_;
  const Workload& workload_;
  const std::vector<Gradient> gradients_;
  const std::int64_t devices_;
};

}  // namespace

void write_data_parallel(WorkerProgram& worker, const Workload& workload, Phase /*phase*/) {
  OneProcess step(worker, workload);
  step.scatter_inputs();
  step.replicate();
  step.forward();
  step.loss();
  step.backward();
  step.reduce();
  step.optimizer();
}

}  // namespace lockstep
