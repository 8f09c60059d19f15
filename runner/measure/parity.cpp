#include "runner/measure/parity.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
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
    const double norm = a[i].sub(b[i].to(a[i].device())).to(at::kDouble).norm().item<double>();
    sum += norm * norm;
  }
  return sum;
}

std::int64_t samples_of(const std::vector<Batch>& shards) {
  std::int64_t samples = 0;
  for (const Batch& shard : shards) samples += shard.input.size(0);
  return samples;
}

std::vector<Batch> cut(const Batch& whole, int shares) {
  const Tensors inputs = whole.input.chunk(shares);
  const Tensors targets = whole.target.chunk(shares);
  std::vector<Batch> shards;
  for (std::size_t i = 0; i < inputs.size(); ++i) shards.push_back({inputs[i], targets[i]});
  return shards;
}

/// What each worker trains in a step: `batch` samples a pass, or as options.split says.
std::vector<Batch> shards_of(const Model& model, const StrategyOptions& options, int workers,
                             int batch, std::uint64_t seed, int step, c10::Device device) {
  std::vector<Batch> shards;
  for (int shard = 0; shard < workers; ++shard) {
    const auto draw = seed + static_cast<std::uint64_t>(step * workers + shard) + 1;
    const auto place = static_cast<std::size_t>(shard);
    const int samples = options.split.empty() ? batch : options.split[place];
    shards.push_back(random_batch(model, samples * options.accumulate, draw, device));
  }
  return shards;
}

/// The largest of all ranks' ratios, on every rank.
double largest(double mine, Communicator& communicator, c10::Device device) {
  constexpr double kScale = 1e12;  // it travels as an integer
  double worst = 0;
  for (const auto& row : gather(&communicator, {std::llround(mine * kScale)}, device)) {
    worst = std::max(worst, static_cast<double>(row.front()) / kScale);
  }
  return worst;
}

/// One device in the place of all: see check_parity.
void train_shards(Model& model, Sgd& sgd, const std::vector<Batch>& shards, int passes,
                  const std::function<void()>& beat) {
  const Tensors before = copies(model.flat_buffers());
  Tensors kept;
  const auto samples = static_cast<double>(samples_of(shards));
  for (const Batch& shard : shards) {
    assign(model.flat_buffers(), before);
    for (const Batch& part : cut({shard.input, shard.target}, passes)) {
      const double share = static_cast<double>(part.input.size(0)) / samples;
      model.loss(part.input, part.target).mul(share).backward();
      beat();
    }
    if (kept.empty()) kept = copies(model.flat_buffers());
  }
  assign(model.flat_buffers(), kept);
  Tensors gradients;
  for (const at::Tensor& parameter : model.parameters()) gradients.push_back(parameter.grad());
  sgd.step(gradients);
  for (const at::Tensor& parameter : model.parameters()) parameter.mutable_grad().reset();
}

/// The one device, and how far from it the strategy's model `together` gets.
class OneDevice {
 public:
  /// `passes` of each shard.
  OneDevice(const std::string& name, c10::Device device, std::uint64_t seed, int passes,
            const std::function<void()>& beat)
      : alone_(make_model(name, device, seed)),
        sgd_(alone_.parameters(), {}),
        passes_(passes),
        beat_(beat) {
    alone_.drop_nothing();
  }

  /// Trains `shards`, which `train` has the strategy train, and takes over what that reached.
  /// Returns how far apart both were, relative to the step. `first`: this is rank 0; the buffers of
  /// other ranks are this step's own until the next forward.
  double step(const std::vector<Batch>& shards, const Model& together, bool first,
              const std::function<void()>& train) {
    const Tensors start = copies(state(alone_));
    train();
    beat_();
    train_shards(alone_, sgd_, shards, passes_, beat_);
    const Tensors expected = state(alone_);
    Tensors reached = state(together);
    if (!first && expected.size() > alone_.parameters().size()) reached.back() = expected.back();
    const double ratio = std::sqrt(squared_distance(reached, expected)) /
                         std::sqrt(squared_distance(expected, start));
    assign(expected, reached);
    return std::isfinite(ratio) ? std::min(ratio, 1e6) : 1e6;
  }

 private:
  Model alone_;
  Sgd sgd_;
  int passes_;
  const std::function<void()>& beat_;
};

}  // namespace

double parity_bound(const StrategyOptions& options, int workers) {
  return options.compression == Compression::bf16 ? (workers + 1) * 0x1p-9 : kParityBound;
}

Parity check_parity(const std::string& name, const StrategyOptions& options, int batch,
                    std::uint64_t seed, Communicator& communicator, Device& device,
                    const std::function<void()>& beat, PointToPoint* servers) {
  const std::size_t rank = static_cast<std::size_t>(communicator.rank());
  Model together = make_model(name, device.torch(), seed);
  OneDevice alone(name, device.torch(), seed, options.accumulate, beat);
  together.drop_nothing();
  const auto strategy = make_strategy(options, together, &communicator, device, servers);
  Trainer trainer(together, *strategy);
  double worst_step = 0;
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<Batch> shards =
        shards_of(together, options, communicator.size(), batch, seed, step, device.torch());
    const double distance = alone.step(shards, together, rank == 0, [&] {
      trainer.step(shards[rank]);
      device.synchronize();
    });
    worst_step = std::max(worst_step, distance);
  }
  return {.relative_l2 = largest(worst_step, communicator, device.torch()), .steps = kSteps};
}

double arithmetic_apart(const std::string& name, const StrategyOptions& options, std::uint64_t seed,
                        Communicator& communicator, Device& device,
                        const std::function<void()>& beat) {
  double worst = 0;
  if (communicator.rank() == 0) {
    const auto cores = make_cpu_device(at::get_num_threads());
    Model on_cores = make_model(name, cores->torch(), seed);
    on_cores.drop_nothing();
    Sgd sgd(on_cores.parameters(), {});
    OneDevice alone(name, device.torch(), seed, options.accumulate, beat);
    const auto shards_on = [&](int step, c10::Device where) {
      return shards_of(on_cores, options, communicator.size(), 0, seed, step, where);
    };
    for (int step = 0; step < kSteps; ++step) {
      const double distance =
          alone.step(shards_on(step, device.torch()), on_cores, /*first=*/true, [&] {
            train_shards(on_cores, sgd, shards_on(step, cores->torch()), options.accumulate, beat);
          });
      worst = std::max(worst, distance);
    }
  }
  return largest(worst, communicator, device.torch());
}

Parity check_data_parallel(const std::string& name, int samples, std::uint64_t seed,
                           ReplicaDevices& devices, Device& device,
                           const std::function<void()>& beat) {
  Model together = make_model(name, device.torch(), seed);
  OneDevice alone(name, device.torch(), seed, /*passes=*/1, beat);
  together.drop_nothing();
  const auto strategy = make_data_parallel(together, devices, device);
  Trainer trainer(together, *strategy);
  Parity parity{.relative_l2 = 0, .steps = kSteps};
  for (int step = 0; step < kSteps; ++step) {
    const auto draw = seed + static_cast<std::uint64_t>(step) + 1;
    const Batch whole = random_batch(together, samples, draw, device.torch());
    const double distance = alone.step(cut(whole, devices.count()), together, /*first=*/true, [&] {
      trainer.step(whole);
      device.synchronize();
    });
    parity.relative_l2 = std::max(parity.relative_l2, distance);
  }
  return parity;
}

}  // namespace lockstep::runner
