#include "runner/measure/reference.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "runner/measure/clock.h"

namespace lockstep::runner {

namespace {

// 10 to 20 ms on a core of 2021: long against timer and scheduler, short against a block.
constexpr int kImages = 4, kChannels = 64, kSide = 32;
constexpr int kRuns = 6;

}  // namespace

ReferenceKernel::ReferenceKernel(Device& device) : device_(device) {
  const auto options = at::TensorOptions().device(device.torch());
  input_ = at::full({kImages, kChannels, kSide, kSide}, 0.5, options).requires_grad_(true);
  weight_ = at::full({kChannels, kChannels, 3, 3}, 0.01, options).requires_grad_(true);
  gradient_ = at::full({kImages, kChannels, kSide, kSide}, 1.0, options);
  run();
}

Moment ReferenceKernel::run() {
  device_.synchronize();
  const Moment begin = host_now();
  at::conv2d(input_, weight_, {}, 1, 1).backward(gradient_);
  device_.synchronize();
  const Moment end = host_now();
  input_.mutable_grad().reset();
  weight_.mutable_grad().reset();
  return end - begin;
}

Moment ReferenceKernel::measure() {
  std::vector<Moment> runs;
  for (int i = 0; i < kRuns; ++i) runs.push_back(run());
  // The extremes are let go; of the others the mean, since a step holds fast and slow moments, too.
  std::ranges::sort(runs);
  return std::accumulate(runs.begin() + 1, runs.end() - 1, Moment{0}) / (kRuns - 2);
}

}  // namespace lockstep::runner
