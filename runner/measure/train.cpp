#include "runner/measure/train.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include "runner/measure/autocast.h"
#include "sim/core/error.h"

namespace lockstep::runner {

Sgd::Sgd(const std::vector<at::Tensor>& parameters, const SgdOptions& options)
    : parameters_(parameters), options_(options) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : parameters_) momenta_.push_back(at::zeros_like(parameter));
}

void Sgd::step(const std::vector<at::Tensor>& gradients) {
  const at::NoGradGuard no_grad;
  // Momenta start at zero, so that the first step is like the others and can be captured.
  at::_fused_sgd_(parameters_, gradients, momenta_, options_.weight_decay, options_.momentum,
                  options_.learning_rate, /*dampening=*/0.0, /*nesterov=*/false,
                  /*maximize=*/false, /*is_first_step=*/false);
}

Trainer::Trainer(Model& model, Strategy& strategy, const SgdOptions& options, Slowness* slowness,
                 Precision precision)
    : model_(model),
      strategy_(strategy),
      slowness_(slowness),
      precision_(precision),
      sgd_(model.parameters(), options),
      root_(at::full({}, strategy.loss_weight(), model.parameters().front().options())) {
  if (!strategy.watches_gradients()) return;
  hooks_.emplace(model.parameters(), [this](int parameter) {
    if (slowness_ != nullptr) slowness_->catch_up();
    strategy_.gradient_ready(parameter);
  });
}

at::Tensor Trainer::step(const Batch& batch, Recorder* recorder) {
  if (slowness_ == nullptr) return train(batch, recorder);
  SlowRecorder slow(*slowness_, recorder);
  return train(batch, &slow);
}

/// Its parts for the passes of a step.
std::vector<Batch> Trainer::cut(const Batch& batch) const {
  const int passes = strategy_.passes();
  if (passes == 1) return {batch};
  const auto inputs = batch.input.chunk(passes);
  const auto targets = batch.target.chunk(passes);
  LOCKSTEP_ASSERT(static_cast<int>(inputs.size()) == passes, "a batch has a part for every pass");
  std::vector<Batch> parts;
  for (std::size_t i = 0; i < inputs.size(); ++i) parts.push_back({inputs[i], targets[i]});
  return parts;
}

at::Tensor Trainer::forward(const Batch& batch, Recorder* recorder) {
  const Autocast autocast(precision_, model_.parameters().front().device().type());
  return strategy_.loss(model_, batch.input, batch.target, recorder);
}

at::Tensor Trainer::train(const Batch& batch, Recorder* recorder) {
  const auto mark = [recorder](Mark what) {
    if (recorder != nullptr) recorder->mark(what, -1);
  };
  mark(Mark::step_begin);
  at::Tensor loss;
  int left = strategy_.passes();
  for (const Batch& part : cut(batch)) {
    strategy_.before_forward();
    loss = forward(part, recorder);
    mark(Mark::backward_begin);
    strategy_.backward(loss, root_);
    mark(Mark::backward_end);
    if (--left > 0) strategy_.after_pass();
  }
  strategy_.before_optimizer();
  mark(Mark::optimizer_begin);
  if (!strategy_.updates_parameters()) sgd_.step(strategy_.gradients());
  mark(Mark::optimizer_end);
  strategy_.after_optimizer();
  // Undefined gradients are taken over by the next backward instead of being added to.
  for (const at::Tensor& parameter : model_.parameters()) parameter.mutable_grad().reset();
  mark(Mark::step_end);
  return loss.detach();
}

}  // namespace lockstep::runner
