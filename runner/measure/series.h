#pragma once

#include <string>
#include <vector>

#include "runner/measure/bench.h"
#include "runner/measure/worker.h"
#include "sim/records/run.h"

namespace lockstep::runner {

/// Reference times around the blocks of a series.
class SpeedSeries {
 public:
  void add(Moment before, Moment after);
  /// The index by which the series' median step, normalised, is the median of its steps each
  /// normalised by its own block: a machine changes its speed from one block to the next.
  SpeedIndex of(const std::vector<Time>& steps) const;
  /// RunRepeat::speed_change.
  double change() const;

 private:
  std::vector<Time> before_, after_;
};

struct ProfileSeries {
  std::vector<StepParts> parts;
  std::vector<Time> steps;   ///< unprofiled
  std::vector<Time> inputs;  ///< of them
  SpeedSeries speed;
};

struct RunSeries {
  std::vector<TimedStep> steps;
  SpeedSeries speed;
};

/// The steps of a series as one repeat of `run`, and this rank's part in it. Needs one step.
void add_repeat(const RunSeries& series, int warmup, Worker& worker, Run& run);

}  // namespace lockstep::runner
