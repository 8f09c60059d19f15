#pragma once

#include <vector>

#include "sim/core/time.h"

namespace lockstep {

/// How long the host of one rank took for the same work, in one process: step by step, the ranks'
/// steps side by side, or once.
struct HostTimes {
  int process = 0, rank = 0;
  std::vector<Time> times;
};

/// Host times of ranks 0 .. n - 1 that worked side by side, relative to the median over all ranks
/// and processes of their medians. How slow a host is is mostly chance: between processes, and
/// within one from some ten steps to the next (10 to 16 %, hardly together with other ranks'). A
/// step waits for the slowest of its moment; medians rank by rank would make all ranks alike. So
/// the slowest rank gets the median over processes of the median over steps of each step's slowest,
/// the next that of the next slowest, and so on; ranks are ordered by their own medians. Only
/// processes in which every rank was seen count, and of them as many steps as every rank has.
/// Empty where there is none, and for one rank alone.
std::vector<double> hosts_of_ranks(const std::vector<HostTimes>& hosts);

}  // namespace lockstep
