#pragma once

#include <c10/core/DeviceType.h>

#include "runner/measure/precision.h"

namespace lockstep::runner {

/// While it lives, what this thread computes forward on such a device runs in bf16 where autocast
/// knows that to be enough; backward follows what forward did, and is run outside. At other
/// precisions it does nothing.
class Autocast {
 public:
  Autocast(Precision precision, c10::DeviceType device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  c10::DeviceType device_;
  bool on_;
};

/// Lets this process use TF32 at Precision::tf32 and nowhere else. (PyTorch's own default, TF32 in
/// convolutions and not in products, is neither of the two.)
void use_arithmetic(Precision precision);

}  // namespace lockstep::runner
