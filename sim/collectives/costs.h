#pragma once

#include <cstdint>

#include "sim/core/task_graph.h"
#include "sim/core/time.h"
#include "sim/core/units.h"

namespace lockstep {

/// Time of a collective from the last launch to the end of the last rank, where every hop has
/// `step.latency` and `step.rate` (> 0) to itself:
///   ring all-reduce   2(n-1) (a + c/B) + (n-1) c/R, c the largest of the n chunks, in bytes
///   chain broadcast   (n-2+k) messages one after another, k segments: n + k - 3 whole ones and the
///                     last segment (with k = 1: n - 1 times everything)
///   recursive doubling, halving-doubling, tree   the largest message of each step, one after the
///                     other: log2(n) (a + S/B + S/R); 2 log2(n) a + 2 (n-1)/n S/B + (n-1)/n S/R;
///                     ceil(log2 n) (2a + 2S/B + S/R)
///   root              a + (n-1) S/B (+ S/R): all share the root's port
///   Gloo's ring       two segments under way: each waits until the one before the last was added
/// a = latency, B = rate, R = reduction; every message is rounded to the picosecond, as in the
/// step-by-step run, which this equals. (Patarasuk & Yuan 2009; Thakur, Rabenseifner & Gropp 2005;
/// their S/n is c here because chunks are whole elements.) One rank takes no time.
Time formula_time(const Collective& collective, std::uint32_t ranks);

}  // namespace lockstep
