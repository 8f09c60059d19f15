#pragma once

#include <string>
#include <vector>

#include "sim/core/time.h"

namespace lockstep::runner {

/// How long one piece of a repeat takes.
struct PieceEstimate {
  std::string name;
  Time least;  ///< with one timed block of each kind
  Time full;   ///< with all steps
  bool operator==(const PieceEstimate&) const = default;
};

/// A configuration measured with a single step in each block.
struct QuickPass {
  Time whole;
  Time steps;   ///< of its one round: profiled and timed steps of every kind
  Time speeds;  ///< of its one round: the reference kernel between blocks
  Time step;    ///< alone
};

/// Steps in a block between two looks at the machine's speed.
int steps_per_block(Time step, int steps);

/// The same configuration at a batch that is `scale` times as large, with `steps` timed steps.
PieceEstimate estimate_piece(const std::string& name, const QuickPass& quick, double scale,
                             int steps);

/// How `available` is shared: to each its least, then what makes the sum of their errors smallest;
/// what nobody could use is shared in proportion to their full times. Where not even the least
/// fits, the least. The error of a median over n rounds goes with 1 / sqrt(n), and rounds that cost
/// c each fill a time t with n = t / c: the sum is smallest at times in proportion to the cube root
/// of c, none above its full time.
std::vector<Time> shares(const std::vector<PieceEstimate>& pieces, Time available);

Time sum_least(const std::vector<PieceEstimate>& pieces);
Time sum_full(const std::vector<PieceEstimate>& pieces);

/// "about 2 min 40 s", "about 9 s": as exact as an estimate is.
std::string about(Time time);
/// "2 min 41 s", "8.9 s"
std::string span(Time time);

}  // namespace lockstep::runner
