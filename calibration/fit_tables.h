#pragma once

#include <vector>

#include "calibration/speed.h"
#include "sim/records/calibration.h"
#include "sim/records/measurement.h"

namespace lockstep {

/// One table for each (collective, backend, algorithm, workers, topology): at each size the median
/// over repeats, at equal speed, then made non-decreasing in bytes. A size that one repeat holds
/// out and another does not is calibrated. The call between others: the median of the repeats that
/// timed it.
std::vector<CollectiveTable> fit_collectives(const std::vector<CollectiveSample>& samples,
                                             const Speed& speed, std::vector<Fit>& fits);

/// One table for each kind of copy, the median at each size.
std::vector<CopyTable> fit_copies(const std::vector<CopyTable>& samples);

/// Medians of together / alone, at least one: for each kind of layer that was measured, and over
/// all of them for the others.
InterferenceFit fit_interference(const std::vector<InterferenceSample>& samples,
                                 std::vector<Fit>& fits);

/// How much longer a worker takes beside others, against as many threads on one active worker.
std::vector<CoreSlowdown> fit_cores(const std::vector<CoreSample>& samples, const Speed& speed);

}  // namespace lockstep
