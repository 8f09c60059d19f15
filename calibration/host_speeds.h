#pragma once

#include <vector>

#include "sim/core/time.h"

namespace lockstep {

/// How long the host of one rank took for the same work, in one process.
struct HostTime {
  int process = 0, rank = 0;
  Time time;
};

/// Host times of ranks 0 .. n - 1 that worked side by side, relative to the median over all. How
/// slow the host of a process is is mostly chance, and a step waits for the slowest; medians rank
/// by rank would make all ranks alike. So the slowest rank gets the median over processes of each
/// one's slowest, the next that of the next slowest, and so on; ranks are ordered by their own
/// medians. Only processes in which every rank was seen count. Empty where there is none, and for
/// one rank alone.
std::vector<double> hosts_of_ranks(const std::vector<HostTime>& times);

}  // namespace lockstep
