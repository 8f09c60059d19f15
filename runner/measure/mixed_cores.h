#pragma once

#include <vector>

namespace lockstep::runner {

/// Of a host's cores those of one worker where `gpus` workers, who launch and wait, stand beside
/// one that computes on cores, the last rank: two for each of the former (one where there are fewer
/// than four for each), and for the latter the others, `threads` of them (0: all). InputError where
/// that leaves it none, or fewer than `threads`.
std::vector<int> mixed_cores(const std::vector<int>& all, int gpus, int rank, int threads);

}  // namespace lockstep::runner
