#pragma once

#include <string>

#include "runner/measure/options.h"
#include "runner/measure/results.h"
#include "runner/measure/visit_record.h"

namespace lockstep::runner {

/// What would be measured and how long it takes. What that rests on: `earlier`, the pieces of an
/// earlier visit, or quick timings.
void print_plan(const VisitRecord& record, const MeasureOptions& options, bool earlier = false);

/// What was measured, how stable it is, what was left out, and what to do next.
void print_closing(const Part& whole, const VisitRecord& record, const MeasureOptions& options);

/// Throws RunError where what was printed could not be written.
void flush_screen();

/// For each collective and number of workers the largest bus bandwidth (as nccl-tests defines it)
/// of any size and repeat, and its share of the machine's link where that is known.
void print_bandwidths(const Measurement& measurement, const Machine& machine);

}  // namespace lockstep::runner
