#pragma once

#include "runner/communicators/rendezvous.h"
#include "runner/measure/options.h"

namespace lockstep::runner {

/// What one worker does in one repeat of a visit with --cpu-workers: the last rank computes on
/// cores, each other on the GPU of its rank, and they share batches. Parity with one device, for
/// each way of adding gradients; for each model and batch the split, unless it was given; the
/// worker's own profile at its share, before and after each run; the runs; and what copies and sums
/// cost.
void run_mixed_worker(const MeasureOptions& options, const WorkerEnvironment& environment);

}  // namespace lockstep::runner
