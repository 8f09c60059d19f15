#pragma once

#include <ATen/Context.h>

#include "runner/measure/autocast.h"

namespace lockstep::runner {

/// Exact sums need fp32 throughout and algorithms that are the same each time: of attention, the
/// one that is made of matrix products, since the others add gradients in any order. While it
/// lives.
class ExactArithmetic {
 public:
  explicit ExactArithmetic(Precision otherwise) : otherwise_(otherwise) {
    use_arithmetic(Precision::fp32);
    set(true);
  }
  ~ExactArithmetic() {
    use_arithmetic(otherwise_);
    set(false);
  }
  ExactArithmetic(const ExactArithmetic&) = delete;
  ExactArithmetic& operator=(const ExactArithmetic&) = delete;

 private:
  static void set(bool exact) {
    at::Context& context = at::globalContext();
    context.setBenchmarkCuDNN(!exact);
    context.setDeterministicCuDNN(exact);
    context.setSDPUseFlash(!exact);
    context.setSDPUseMemEfficient(!exact);
    context.setSDPUseCuDNN(!exact);
  }

  Precision otherwise_;
};

}  // namespace lockstep::runner
