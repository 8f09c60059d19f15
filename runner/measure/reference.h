#pragma once

#include <ATen/core/Tensor.h>

#include "runner/measure/device.h"

namespace lockstep::runner {

/// A fixed piece of work of the same kind as training: a convolution, forward and backward. How
/// long it takes tells how fast the machine is at the moment.
class ReferenceKernel {
 public:
  explicit ReferenceKernel(Device& device);
  /// Once; nanoseconds.
  Moment run();
  /// Mean of a few, without the extremes.
  Moment measure();

 private:
  Device& device_;
  at::Tensor input_, weight_, gradient_;
};

}  // namespace lockstep::runner
