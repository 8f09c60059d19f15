#pragma once

#include <cstdint>

#include "sim/core/task_graph.h"
#include "sim/core/time.h"
#include "sim/core/units.h"

namespace lockstep {

/// Time of a collective from the last launch to the end of the last rank, where every hop has
/// `step.latency` and `step.rate` (> 0) to itself:
///   ring, pairwise    m messages one after another of the largest chunk, c of n: m = n-1, of an
///                     all-reduce 2(n-1): m (a + c/B), and c/R after each of the n-1 that are added
///   chain             (n-2+k) messages one after another, k segments: n + k - 3 whole ones and the
///                     last segment (with k = 1: n - 1 times everything)
///   recursive doubling, halving, halving-doubling, tree   the largest message of each step, one
///                     after the other: of an all-reduce log2(n) (a + S/B + S/R); 2 log2(n) a +
///                     2 (n-1)/n S/B + (n-1)/n S/R; ceil(log2 n) (2a + 2S/B + S/R)
///   linear            a + (n-1) c/B (+ (n-1) c/R): all share the root's port, or each its own;
///                     of an all-reduce twice, S being c
///   hierarchical      hierarchical_time below with the same cost within and between hosts
///   double tree       the largest message of each step: a bound from above, since a rank that has
///                     nothing to do in a step does not wait for it
///   Gloo's ring       two segments under way: each waits until the one before the last was added
/// a = latency, B = rate, R = reduction; every message is rounded to the picosecond, as in the
/// step-by-step run, which this equals (where all chunks are equal, if linear or hierarchical).
/// (Patarasuk & Yuan 2009; Thakur, Rabenseifner & Gropp 2005; their S/n is c here because chunks
/// are whole elements.) One rank takes no time.
Time formula_time(const Collective& collective, std::uint32_t ranks);

/// Of a hierarchical all-reduce, where messages within hosts cost `inside` and those between them
/// `between`: g ranks on each of h hosts, (g-1) (2 (a + S/g/B) + S/g/R) within and
/// (h-1) (2 (a + S/g/h/B) + S/g/h/R) between. With a last host that is not full, ceil(log2 g) times
/// the whole array within, and (h-1) (2 (a + S/h/B) + S/h/R) between.
Time hierarchical_time(const Collective& collective, std::uint32_t ranks, const StepCost& inside,
                       const StepCost& between);

}  // namespace lockstep
