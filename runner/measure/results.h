#pragma once

#include <string>
#include <vector>

#include "runner/measure/visit_record.h"
#include "sim/records/measurement.h"
#include "sim/records/run.h"

namespace lockstep::runner {

/// What one worker measured in one piece of one repeat. Saved after each, so that what was measured
/// survives whatever ends the measurement.
struct Part {
  Measurement measurement;
  std::vector<Run> runs;
};

/// To `out`/parts/repeat<r>-<piece>-rank<k>.*.json.
void save_part(const Part& part, const std::string& out, int repeat, const std::string& piece,
               int rank);

/// The parts of the pieces that were done, as one. Repeats and the machine's tables come from rank
/// 0, profiles and RunRank from every rank of which there is a part (other hosts keep theirs).
Part merge_parts(const std::string& out, const std::vector<PieceDone>& done, int workers);

/// A replay measures nothing of the machine.
bool holds_anything(const Measurement& measurement);

/// Writes `out`/measurement.json and `out`/runs.json with its samples, where there is any.
void write_results(const Part& whole, const std::string& out);

}  // namespace lockstep::runner
