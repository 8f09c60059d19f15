#include "runner/measure/autocast.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>

namespace lockstep::runner {

Autocast::Autocast(Precision precision, c10::DeviceType device)
    : device_(device), on_(precision == Precision::bf16) {
  if (!on_) return;
  at::autocast::set_autocast_dtype(device_, at::kBFloat16);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!on_) return;
  // Weights are cast once a forward: the next one has others.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, false);
}

void use_arithmetic(Precision precision) {
  const bool tf32 = precision == Precision::tf32;
  at::globalContext().setAllowTF32CuBLAS(tf32);
  at::globalContext().setAllowTF32CuDNN(tf32);
}

}  // namespace lockstep::runner
