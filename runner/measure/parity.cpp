#include "runner/measure/parity.h"

#include <ATen/TensorOperators.h>

#include <cmath>
#include <vector>

#include "runner/data/loader.h"
#include "runner/measure/gather.h"
#include "runner/measure/train.h"
#include "runner/models/zoo.h"

namespace lockstep::runner {

namespace {

constexpr int kSteps = 3;

using Tensors = std::vector<at::Tensor>;

Tensors copies(const Tensors& tensors) {
  Tensors result;
  for (const at::Tensor& tensor : tensors) result.push_back(tensor.detach().clone());
  return result;
}

void assign(const Tensors& to, const Tensors& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
}

/// Parameters, and the buffers that are not counters.
Tensors state(const Model& model) {
  Tensors result;
  for (const at::Tensor& parameter : model.parameters()) result.push_back(parameter.detach());
  for (const at::Tensor& buffer : model.flat_buffers()) {
    if (buffer.is_floating_point()) result.push_back(buffer);
  }
  return result;
}

double squared_distance(const Tensors& a, const Tensors& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double norm = a[i].sub(b[i]).to(at::kDouble).norm().item<double>();
    sum += norm * norm;
  }
  return sum;
}

/// One device in the place of all: see check_parity.
void train_shards(Model& model, Sgd& sgd, const std::vector<Batch>& shards,
                  const std::function<void()>& beat) {
  const Tensors before = copies(model.flat_buffers());
  Tensors kept;
  const double share = 1.0 / static_cast<double>(shards.size());
  for (const Batch& shard : shards) {
    assign(model.flat_buffers(), before);
    model.loss(shard.input, shard.target).mul(share).backward();
    beat();
    if (kept.empty()) kept = copies(model.flat_buffers());
  }
  assign(model.flat_buffers(), kept);
  Tensors gradients;
  for (const at::Tensor& parameter : model.parameters()) gradients.push_back(parameter.grad());
  sgd.step(gradients);
  for (const at::Tensor& parameter : model.parameters()) parameter.mutable_grad().reset();
}

}  // namespace

Parity check_parity(const std::string& name, const StrategyOptions& options, int batch,
                    std::uint64_t seed, Communicator& communicator, Device& device,
                    const std::function<void()>& beat) {
  const std::size_t rank = static_cast<std::size_t>(communicator.rank());
  Model together = make_model(name, device.torch(), seed);
  Model alone = make_model(name, device.torch(), seed);
  together.drop_nothing();
  alone.drop_nothing();
  const auto strategy = make_strategy(options, together, &communicator, device);
  Trainer trainer(together, *strategy);
  Sgd sgd(alone.parameters(), {});
  double worst_step = 0;
  for (int step = 0; step < kSteps; ++step) {
    const Tensors start = copies(state(alone));
    std::vector<Batch> shards;
    for (int shard = 0; shard < communicator.size(); ++shard) {
      const auto draw = seed + static_cast<std::uint64_t>(step * communicator.size() + shard) + 1;
      shards.push_back(random_batch(alone, batch, draw, device.torch()));
    }
    trainer.step(shards[rank]);
    device.synchronize();
    beat();
    train_shards(alone, sgd, shards, beat);
    const Tensors expected = state(alone);
    // On the other ranks the buffers are this step's own until the next forward.
    Tensors reached = state(together);
    if (rank != 0 && expected.size() > alone.parameters().size()) {
      reached.back() = expected.back();
    }
    const double ratio = std::sqrt(squared_distance(reached, expected)) /
                         std::sqrt(squared_distance(expected, start));
    worst_step = std::max(worst_step, std::isfinite(ratio) ? std::min(ratio, 1e6) : 1e6);
    assign(expected, reached);
  }
  constexpr double kScale = 1e12;  // the ratio travels as an integer
  double worst = 0;
  for (const auto& row :
       gather(&communicator, {std::llround(worst_step * kScale)}, device.torch())) {
    worst = std::max(worst, static_cast<double>(row.front()) / kScale);
  }
  return {.relative_l2 = worst, .steps = kSteps};
}

}  // namespace lockstep::runner
