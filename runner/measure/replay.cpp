#include "runner/measure/replay.h"

#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "sim/core/error.h"
#include "sim/workload/workload.h"

namespace lockstep::runner {

namespace {

constexpr std::int64_t kFloat = 4;

at::Tensor flat(Bytes bytes) {
  LOCKSTEP_ASSERT(bytes.count % kFloat == 0, "parameters and buffers are floats");
  return at::zeros({bytes.count / kFloat});
}

/// By layer, its parameters as indices of Model::parameters() in the order in which they get ready.
std::vector<std::vector<int>> ready_by_layer(const Profile& profile) {
  std::vector<std::vector<int>> result;
  int index = 0;
  for (const Layer& layer : profile.layers) {
    std::vector<std::pair<int, int>> places;  // ready order, parameter
    for (const Parameter& parameter : layer.parameters) {
      places.emplace_back(parameter.ready_order, index++);
    }
    std::ranges::sort(places);
    std::vector<int>& mine = result.emplace_back();
    for (const auto& [order, parameter] : places) mine.push_back(parameter);
  }
  return result;
}

}  // namespace

Model replayed_model(const Profile& profile) {
  Model model(profile.model, {}, 0);
  int before = Model::kInput;
  for (const Layer& from : profile.layers) {
    ModelLayer layer{.name = from.name, .kind = from.kind, .inputs = {before}};
    for (const Parameter& parameter : from.parameters) {
      layer.parameters.push_back({parameter.name, flat(parameter.bytes)});
    }
    if (from.buffers > Bytes{}) {
      layer.buffers.push_back({"buffers", flat(from.buffers)});
      if (counts_batches(from)) {
        layer.buffers.push_back({"num_batches_tracked", at::zeros({}, at::kLong)});
      }
    }
    before = model.add(std::move(layer));
  }
  model.finish(c10::kCPU);
  return model;
}

Replay::Replay(const Profile& profile, const Model& model, Strategy& strategy, Slowness* slowness,
               Moment spin)
    : profile_(profile),
      model_(model),
      strategy_(strategy),
      slowness_(slowness),
      pace_(spin),
      backward_order_(backward_order(profile)),
      ready_after_(ready_by_layer(profile)) {
  for (const at::Tensor& parameter : model.parameters()) {
    gradients_.push_back(at::zeros_like(parameter.detach()));
  }
}

void Replay::pass(const Cost& cost) {
  const double factor = slowness_ != nullptr ? slowness_->factor() : 1;
  pace_.pass(static_cast<Moment>(factor * static_cast<double>(cost.device.ns())));
}

void Replay::begin(StepPart part) {
  if (slowness_ != nullptr) slowness_->delay(part);
}

void Replay::load() {
  pace_.pass((profile_.input_load + profile_.input_copy).ns() * strategy_.passes());
}

void Replay::forward(Recorder* recorder) {
  const bool by_layer = recorder != nullptr && recorder->layers();
  begin(StepPart::forward);
  for (std::size_t i = 0; i < profile_.layers.size(); ++i) {
    pass(profile_.layers[i].forward);
    if (by_layer) recorder->mark(Mark::forward_end, static_cast<int>(i));
  }
}

void Replay::backward(Recorder* recorder) {
  const bool by_layer = recorder != nullptr && recorder->layers();
  begin(StepPart::backward);
  for (const std::uint32_t layer : backward_order_) {
    if (by_layer) recorder->mark(Mark::backward_begin, static_cast<int>(layer));
    pass(profile_.layers[layer].backward);
    for (const int parameter : ready_after_[layer]) {
      const auto index = static_cast<std::size_t>(parameter);
      model_.parameters()[index].mutable_grad() = gradients_[index];
      strategy_.gradient_ready(parameter);
    }
  }
}

void Replay::step(Recorder* recorder) {
  const auto mark = [recorder](Mark what) {
    if (recorder != nullptr) recorder->mark(what, -1);
  };
  mark(Mark::step_begin);
  pace_.settle();  // a step that came late does not make the next one short
  pass(profile_.step_overhead);
  for (int left = strategy_.passes(); left > 0; --left) {
    strategy_.before_forward();
    mark(Mark::forward_begin);
    forward(recorder);
    mark(Mark::backward_begin);
    backward(recorder);
    mark(Mark::backward_end);
    if (left > 1) strategy_.after_pass();
  }
  strategy_.before_optimizer();
  mark(Mark::optimizer_begin);
  if (!strategy_.updates_parameters()) pass(profile_.optimizer);
  mark(Mark::optimizer_end);
  strategy_.after_optimizer();
  for (const at::Tensor& parameter : model_.parameters()) parameter.mutable_grad().reset();
  mark(Mark::step_end);
}

}  // namespace lockstep::runner
