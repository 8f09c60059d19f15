#pragma once

#include <span>

#include "sim/core/time.h"
#include "sim/records/run.h"

namespace lockstep {

/// Mean and quantiles, these linear between the two nearest values. `samples` must not be empty.
Quantiles quantiles(std::span<const Time> samples);

/// Standard deviation over mean; zero for fewer than two samples or a mean of zero.
double relative_spread(std::span<const Time> samples);

}  // namespace lockstep
