#pragma once

#include <string>
#include <vector>

#include "runner/communicators/rendezvous.h"
#include "runner/measure/options.h"

namespace lockstep::runner {

/// `lockstep-measure --device cuda`: one visit to a host with GPUs gives everything a calibration
/// of it needs, and the runs to check it. Starts one worker per GPU, for n = 1 .. options.workers
/// (0: all GPUs) and each repeat; every start loops over all configurations, and is a piece of the
/// visit: one that has ended well is not started again by --resume. A start that fails is reported,
/// what was measured is kept, and RunError follows at the end. Under torchrun and the like: one
/// repeat at the number of workers there is.
void measure_cuda(const MeasureOptions& options, const std::vector<std::string>& arguments);

/// Name of a start of `workers` workers among the pieces of a visit.
std::string gpu_piece(int workers);

/// What one of those workers does in one repeat. `most_workers`: of the visit. It profiles where it
/// is alone and where all GPUs work, runs every configuration, and times the machine's tables.
void run_worker_cuda(const MeasureOptions& options, const WorkerEnvironment& environment,
                     int most_workers);

}  // namespace lockstep::runner
