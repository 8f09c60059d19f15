#pragma once

#include <string>

#include "sim/records/calibration.h"
#include "sim/records/run.h"
#include "sim/records/validation.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

/// For people: a table for each group, errors signed, points that do not count marked.
std::string to_table(const Validation& validation);

/// Of several visits together: a line for each group, its errors and what is wanted of them.
std::string summary_table(const Validation& validation);

/// For each bucket of a run: ready, launched, done; predicted, measured, and the differences as
/// shares of the step. Empty where the run recorded no buckets.
std::string bucket_table(const Calibration& calibration, const Run& run,
                         const PlatformOptions& platform = {});

}  // namespace lockstep
