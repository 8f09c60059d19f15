#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

namespace lockstep::runner {

/// Calls `ready(i)` in every backward, right after the gradient of parameters[i] has been put into
/// its .grad(); until this object is gone.
class GradientHooks {
 public:
  GradientHooks(const std::vector<at::Tensor>& parameters, const std::function<void(int)>& ready);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

 private:
  struct Hook;
  std::vector<Hook> hooks_;
};

}  // namespace lockstep::runner
