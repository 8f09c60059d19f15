#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runner/measure/cuda/step_timing.h"
#include "runner/measure/precision.h"

namespace lockstep::runner {

/// How long the parts of a configuration take, which are done over and over.
struct QuickPassCuda {
  Time make;    ///< a model and a batch
  Time search;  ///< what the first step takes above the others
  Time step;    ///< eager, synchronised
};

/// Trains a few steps alone to see it. Nothing where memory does not suffice.
std::optional<QuickPassCuda> time_quickly_cuda(const GpuWorker& worker, const std::string& model,
                                               int batch, Precision precision, std::uint64_t seed);

/// What a configuration takes in one repeat: its profile, and the runs of so many strategies beside
/// it, with blocks of `block`.
Time estimate_cuda(const QuickPassCuda& quick, Time block, int strategies);

}  // namespace lockstep::runner
