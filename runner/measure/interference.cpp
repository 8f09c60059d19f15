#include "runner/measure/interference.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>

#include <algorithm>
#include <map>

#include "runner/measure/clock.h"
#include "runner/measure/gather.h"
#include "runner/measure/statistics.h"
#include "runner/models/layers.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

constexpr Moment kWindow = 100'000'000;  // ns of compute beside what waits
constexpr Moment kPause = 8'000'000;     // ns between transfers, beside what they take
constexpr int kTransfers = 8;
constexpr Bytes kLarge{8 * 1024 * 1024};  // a large bucket's size
constexpr Bytes kSmall{4 * 1024};         // where bytes do not count
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

struct Span {
  Moment begin = 0, end = 0;
  Moment length() const { return end - begin; }
};

bool overlap(const Span& a, const Span& b) {
  return a.begin < b.end && b.begin < a.end;
}

bool within(const Span& inner, const Span& outer) {
  return outer.begin <= inner.begin && inner.end <= outer.end;
}

class Interference {
 public:
  Interference(Communicator& communicator, Device& device)
      : communicator_(communicator), device_(device) {}

  std::vector<InterferenceSample> measure();

 private:
  Moment compute(const Piece& piece, int times) {
    device_.synchronize();
    const Moment begin = host_now();
    for (int i = 0; i < times; ++i) piece.run();
    device_.synchronize();
    return host_now() - begin;
  }
  at::Tensor array(Bytes bytes) const {
    return at::ones({bytes.count / 4}, at::TensorOptions().device(device_.torch()));
  }
  void measure_piece(const std::string& kind);
  void measure_waiting(const Piece& piece, const std::string& kind, int times);
  void measure_transferring(const Piece& piece, const std::string& kind, Moment once, Bytes bytes);
  std::vector<Span> common_spans(const std::vector<Transfer>& mine);
  Moment all_reduce_alone(Bytes bytes);
  void add(const std::string& kind, const std::string& beside, Bytes bytes, Moment alone,
           Moment together) {
    samples_.push_back({.layer_kind = kind,
                        .beside = beside,
                        .workers = communicator_.size(),
                        .alone = Time::nanoseconds(alone),
                        .together = Time::nanoseconds(together),
                        .bytes = bytes});
  }

  Communicator& communicator_;
  Device& device_;
  std::map<Bytes, Moment> alone_;  ///< ns an all-reduce takes, by size
  std::vector<InterferenceSample> samples_;
};

Moment Interference::all_reduce_alone(Bytes bytes) {
  constexpr int kTimes = 6;
  const at::Tensor flat = array(bytes);
  communicator_.barrier();
  for (int i = 0; i < kTimes; ++i) communicator_.all_reduce(flat);
  std::vector<std::int64_t> times;
  for (const Transfer& t : communicator_.take_transfers()) times.push_back(t.done - t.launch);
  times.erase(times.begin());
  return agree(&communicator_, median_ns(times), device_.torch());
}

/// Beside an all-reduce that the last rank has not launched yet: it comes only after computing.
void Interference::measure_waiting(const Piece& piece, const std::string& kind, int times) {
  const at::Tensor flat = array(kLarge);
  communicator_.barrier();
  const Moment alone_before = compute(piece, times);
  communicator_.barrier();
  const bool last = communicator_.rank() == communicator_.size() - 1;
  if (!last) communicator_.all_reduce(flat);
  const Moment waiting = compute(piece, times);
  if (last) communicator_.all_reduce(flat);
  communicator_.take_transfers();
  communicator_.barrier();
  const Moment alone = (alone_before + compute(piece, times)) / 2;
  if (!last) add(kind, "waiting", {}, alone, waiting);
}

/// From the last rank's launch to the last rank's end. Ranks of one host share a clock.
std::vector<Span> Interference::common_spans(const std::vector<Transfer>& mine) {
  std::vector<std::int64_t> moments;
  for (const Transfer& transfer : mine) {
    moments.push_back(transfer.launch);
    moments.push_back(transfer.done);
  }
  std::vector<Span> spans(mine.size());
  for (const auto& row : gather(&communicator_, moments, device_.torch())) {
    for (std::size_t i = 0; i < spans.size(); ++i) {
      spans[i].begin = std::max(spans[i].begin, row[2 * i]);
      spans[i].end = std::max(spans[i].end, row[2 * i + 1]);
    }
  }
  communicator_.take_transfers();  // of gathering
  return spans;
}

/// Launches all-reduces from between layers, as backward does, with pauses in which the layers run
/// alone: who computes holds the cores when the message comes, which is not so where transfers
/// follow each other. Layers beside a transfer and alone take turns, so that drift hits both.
void Interference::measure_transferring(const Piece& piece, const std::string& kind, Moment once,
                                        Bytes bytes) {
  const at::Tensor flat = array(bytes);
  const Moment pause = kPause + 4 * alone_.at(bytes);
  const auto gap = static_cast<int>(std::clamp<Moment>(pause / once, 1, 10'000));
  communicator_.barrier();
  communicator_.take_transfers();
  std::vector<Span> layers;
  for (int i = 0; i < gap * kTransfers; ++i) {
    if (i % gap == gap / 2) communicator_.all_reduce(flat);
    const Moment begin = host_now();
    piece.run();
    layers.push_back({begin, host_now()});
  }
  const std::vector<Span> transfers = common_spans(communicator_.take_transfers());

  Moment alone = 0, beside = 0;
  std::int64_t alone_count = 0, beside_count = 0;
  for (const Span& layer : layers) {
    if (std::ranges::any_of(transfers, [&](const Span& t) { return within(layer, t); })) {
      beside += layer.length();
      ++beside_count;
    } else if (std::ranges::none_of(transfers, [&](const Span& t) { return overlap(layer, t); })) {
      alone += layer.length();
      ++alone_count;
    }
  }
  if (bytes == kLarge && beside_count > 0 && alone_count > 0) {
    add(kind, "transferring", {}, alone / alone_count, beside / beside_count);
  }
  Moment length = 0;
  std::int64_t count = 0;
  for (const Span& transfer : transfers) {
    if (transfer.end > layers.back().end) continue;
    length += transfer.length();
    ++count;
  }
  if (count > 0) add(kind, "compute", bytes, alone_.at(bytes), length / count);
}

void Interference::measure_piece(const std::string& kind) {
  const Piece piece = make_piece(kind, device_);
  piece.run();
  Moment once = std::max<Moment>(1, compute(piece, 2) / 2);
  once = agree(&communicator_, once, device_.torch());
  measure_waiting(piece, kind, static_cast<int>(std::clamp<Moment>(kWindow / once, 2, 10'000)));
  for (const Bytes bytes : {kLarge, kSmall}) measure_transferring(piece, kind, once, bytes);
}

std::vector<InterferenceSample> Interference::measure() {
  for (const Bytes bytes : {kLarge, kSmall}) alone_[bytes] = all_reduce_alone(bytes);
  for (const char* kind : {"conv", "norm", "activation", "pool", "linear"}) measure_piece(kind);
  return samples_;
}

}  // namespace

std::vector<InterferenceSample> measure_interference(Communicator& communicator, Device& device) {
  return Interference(communicator, device).measure();
}

}  // namespace lockstep::runner
