#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "runner/measure/precision.h"
#include "runner/measure/recorder.h"
#include "runner/measure/straggler.h"
#include "runner/models/model.h"
#include "runner/strategies/gradient_hooks.h"
#include "runner/strategies/strategy.h"

namespace lockstep::runner {

struct Batch {
  at::Tensor input, target;
};

/// SGD as in the lab reports; the same for every strategy.
struct SgdOptions {
  double learning_rate = 0.01, momentum = 0.9, weight_decay = 5e-4;
};

/// Updates all parameters in one call.
class Sgd {
 public:
  Sgd(const std::vector<at::Tensor>& parameters, const SgdOptions& options);
  void step(const std::vector<at::Tensor>& gradients);

 private:
  std::vector<at::Tensor> parameters_, momenta_;
  SgdOptions options_;
};

/// The training loop's body, the same on every device and for every strategy.
class Trainer {
 public:
  /// `slowness`: makes this worker a straggler; null: it is none. All outlive this. TF32 is a
  /// setting of the whole process, see use_arithmetic.
  Trainer(Model& model, Strategy& strategy, const SgdOptions& options = {},
          Slowness* slowness = nullptr, Precision precision = Precision::fp32);
  /// One iteration; returns the loss of its last pass (not read back from the device). `batch`
  /// holds the samples of all passes. With a recorder, its marks.
  at::Tensor step(const Batch& batch, Recorder* recorder = nullptr);

 private:
  std::vector<Batch> cut(const Batch& batch) const;
  at::Tensor train(const Batch& batch, Recorder* recorder);
  at::Tensor forward(const Batch& batch, Recorder* recorder);

  Model& model_;
  Strategy& strategy_;
  Slowness* slowness_;
  Precision precision_;
  Sgd sgd_;
  at::Tensor root_;  ///< of backward
  std::optional<GradientHooks> hooks_;
};

}  // namespace lockstep::runner
