#pragma once

#include <string>
#include <vector>

#include "sim/records/measurement.h"
#include "sim/records/run.h"

namespace lockstep::runner {

/// What one worker measured in one repeat. Saved after every configuration, so that what was
/// measured survives whatever ends the measurement.
struct Part {
  Measurement measurement;
  std::vector<Run> runs;
};

/// To `out`/parts/repeat<r>-rank<k>.*.json.
void save_part(const Part& part, const std::string& out, int repeat, int rank);

/// All parts below `out` as one. Repeats and the machine's tables come from rank 0, profiles and
/// RunRank from every rank.
Part merge_parts(const std::string& out);

/// Whether there is anything in it besides where it comes from; in a replay there is not.
bool holds_anything(const Measurement& measurement);

/// Writes `out`/measurement.json and `out`/runs.json with its samples, those of the two that hold
/// anything, and removes the parts.
void write_results(const Part& whole, const std::string& out);

}  // namespace lockstep::runner
