#include "runner/measure/cuda/other_launches.h"

#include <ATen/ops/add.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include "runner/measure/cuda/check.h"

namespace lockstep::runner {

OtherLaunches::OtherLaunches() {
  constexpr std::int64_t kChannels = 64, kSide = 128;
  const c10::InferenceMode inference;
  const auto options = at::device(at::kCUDA).dtype(at::kFloat);
  image_ = at::randn({8, kChannels, 16, 16}, options);
  weight_ = at::randn({kChannels, kChannels, 3, 3}, options);
  scale_ = at::ones({kChannels}, options);
  shift_ = at::zeros({kChannels}, options);
  mean_ = at::zeros({kChannels}, options);
  variance_ = at::ones({kChannels}, options);
  matrix_ = at::randn({kSide, kSide}, options);
  for (int i = 0; i < 2; ++i) issue();
  check(cudaDeviceSynchronize(), "waiting for the device");
}

void OtherLaunches::issue() const {
  const c10::InferenceMode inference;
  const at::Tensor sum = at::conv2d(image_, weight_, {}, 1, 1);
  const at::Tensor normal =
      at::relu(at::batch_norm(sum, scale_, shift_, mean_, variance_, true, 0.1, 1e-5, true));
  at::max_pool2d(at::add(normal, image_), 2);
  at::mm(matrix_, matrix_);
}

}  // namespace lockstep::runner
