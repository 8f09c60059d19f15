#pragma once

#include <string>
#include <vector>

#include "sim/records/measurement.h"
#include "sim/records/run.h"

namespace lockstep::runner {

/// One worker of one start in a visit.
struct LaunchPart {
  int workers = 1;
  int process = 0;  ///< repeat
  int rank = 0;
};

/// Parts lie below `folder`/parts until they are merged.
void write_part(const std::string& folder, const LaunchPart& part, const Measurement& measurement,
                const std::vector<Run>& runs);

/// The runs of one part; none where it is missing.
std::vector<Run> runs_of_part(const std::string& folder, const LaunchPart& part);

/// What the ranks of one launch left, appended to what there is so far: samples as they are, runs
/// of one configuration as repeats of one run (steps as rank 0 saw them, ranks of the last repeat).
/// A part that is missing is left out. `of_cores`, if any, gets what the last rank measured, which
/// then is another kind of device.
void merge_launch(const std::string& folder, int workers, int process, Measurement& measurement,
                  std::vector<Run>& runs, Measurement* of_cores = nullptr);

/// Median of the reference kernel's times over everything measured; zero where nothing was.
Time reference_of(const Measurement& measurement, const std::vector<Run>& runs);

}  // namespace lockstep::runner
