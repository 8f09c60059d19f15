#include "runner/measure/interference.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>

#include <algorithm>

#include "runner/measure/clock.h"
#include "runner/measure/gather.h"
#include "runner/measure/statistics.h"
#include "runner/models/layers.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

constexpr Moment kWindow = 100'000'000;        // ns of compute per measurement
constexpr Bytes kBlockBytes{8 * 1024 * 1024};  // of an all-reduce: a large bucket's size
constexpr std::array<std::int64_t, 4> kImage{8, 64, 32, 32};

/// A layer of one kind, and what it works on.
struct Piece {
  Model model;
  at::Tensor input, gradient;

  void run() const {
    const ModelLayer& layer = model.layers().front();
    layer.forward(layer, {&input, 1}).backward(gradient);
    input.mutable_grad().reset();
    for (const at::Tensor& parameter : model.parameters()) parameter.mutable_grad().reset();
  }
};

Piece make_piece(const std::string& kind, Device& device) {
  Model model(kind, {}, 0);
  const int channels = static_cast<int>(kImage[1]);
  std::vector<std::int64_t> shape(kImage.begin(), kImage.end());
  if (kind == "conv") {
    add_conv(model, kind, Model::kInput, {.in = channels, .out = channels});
  } else if (kind == "norm") {
    add_norm(model, kind, Model::kInput, channels);
  } else if (kind == "activation") {
    add_relu(model, kind, Model::kInput);
  } else if (kind == "pool") {
    add_max_pool(model, kind, Model::kInput, 2, 2);
  } else {
    LOCKSTEP_ASSERT(kind == "linear", "a kind of layer that can stand alone");
    shape = {32, 1024};
    add_linear(model, kind, Model::kInput, 1024, 1024);
  }
  model.finish(device.torch());
  const auto options = at::TensorOptions().device(device.torch());
  const at::Tensor input = at::ones(shape, options).requires_grad_(true);
  const ModelLayer& layer = model.layers().front();
  const at::Tensor gradient = at::ones_like(layer.forward(layer, {&input, 1}).detach());
  return {.model = std::move(model), .input = input, .gradient = gradient};
}

class Interference {
 public:
  Interference(Communicator& communicator, Device& device)
      : communicator_(communicator),
        device_(device),
        flat_(at::ones({kBlockBytes.count / 4}, at::TensorOptions().device(device.torch()))) {}

  std::vector<InterferenceSample> measure();

 private:
  Moment compute(const Piece& piece, int times) {
    device_.synchronize();
    const Moment begin = host_now();
    for (int i = 0; i < times; ++i) piece.run();
    device_.synchronize();
    return host_now() - begin;
  }
  void measure_piece(const std::string& kind);
  Moment all_reduce_alone();
  void add(const std::string& kind, const std::string& beside, Moment alone, Moment together) {
    samples_.push_back({.layer_kind = kind,
                        .beside = beside,
                        .workers = communicator_.size(),
                        .alone = Time::nanoseconds(alone),
                        .together = Time::nanoseconds(together)});
  }

  Communicator& communicator_;
  Device& device_;
  at::Tensor flat_;
  Moment all_reduce_ = 0;  ///< ns, alone
  std::vector<InterferenceSample> samples_;
};

Moment Interference::all_reduce_alone() {
  constexpr int kTimes = 6;
  communicator_.barrier();
  for (int i = 0; i < kTimes; ++i) communicator_.all_reduce(flat_);
  std::vector<std::int64_t> times;
  for (const Transfer& t : communicator_.take_transfers()) times.push_back(t.done - t.launch);
  times.erase(times.begin());
  return agree(&communicator_, median_ns(times), device_.torch());
}

void Interference::measure_piece(const std::string& kind) {
  const Piece piece = make_piece(kind, device_);
  piece.run();
  Moment once = std::max<Moment>(1, compute(piece, 2) / 2);
  once = agree(&communicator_, once, device_.torch());
  const int times = static_cast<int>(std::clamp<Moment>(kWindow / once, 2, 10'000));

  communicator_.barrier();
  const Moment alone_before = compute(piece, times);

  // Beside an all-reduce that the last rank has not launched yet: it comes only after computing.
  communicator_.barrier();
  communicator_.take_transfers();
  const bool last = communicator_.rank() == communicator_.size() - 1;
  if (!last) communicator_.all_reduce(flat_);
  const Moment waiting = compute(piece, times);
  if (last) communicator_.all_reduce(flat_);
  communicator_.join();

  // Beside transfers that follow each other for longer than the computing can take.
  communicator_.barrier();
  communicator_.take_transfers();
  const auto enough = static_cast<int>(4 * kWindow / all_reduce_ + 4);
  for (int i = 0; i < enough; ++i) communicator_.all_reduce(flat_);
  const Moment begin = host_now();
  const Moment transferring = compute(piece, times);
  const Moment end = host_now();
  std::vector<std::int64_t> beside;
  for (const Transfer& t : communicator_.take_transfers()) {
    if (t.launch >= begin && t.done <= end) beside.push_back(t.done - t.launch);
  }

  communicator_.barrier();
  const Moment alone = (alone_before + compute(piece, times)) / 2;
  // Only ranks other than the last one waited.
  if (!last) add(kind, "waiting", alone, waiting);
  add(kind, "transferring", alone, transferring);
  if (!beside.empty()) add(kind, "compute", all_reduce_, median_ns(beside));
}

std::vector<InterferenceSample> Interference::measure() {
  all_reduce_ = all_reduce_alone();
  for (const char* kind : {"conv", "norm", "activation", "pool", "linear"}) measure_piece(kind);
  return samples_;
}

}  // namespace

std::vector<InterferenceSample> measure_interference(Communicator& communicator, Device& device) {
  return Interference(communicator, device).measure();
}

}  // namespace lockstep::runner
