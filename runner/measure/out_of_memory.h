#pragma once

#include <exception>
#include <functional>

#include "sim/records/run.h"

namespace lockstep::runner {

/// Whether an error says that a device's memory did not suffice: LibTorch's own, or one of a
/// library that asks the driver itself.
bool is_out_of_memory(const std::exception& error);

/// Does `work`; false where memory did not suffice for it. Every other error comes out.
bool fits_in_memory(const std::function<void()>& work);

/// `run`, which has no steps, with the reason. `rank`: the first one whose memory did not suffice.
Run out_of_memory(Run run, int rank);

}  // namespace lockstep::runner
