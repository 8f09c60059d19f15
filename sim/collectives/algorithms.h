#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/core/task_graph.h"

namespace lockstep {

/// One way to run a collective.
struct AlgorithmEntry {
  CollectiveKind kind;
  Algorithm algorithm;
  /// Its time as text, as formula_time (costs.h) has it where chunks are even and every rank has a
  /// link of its own: a = latency, S = bytes, B = bytes a second, R = bytes reduced a second,
  /// n ranks, k segments, g ranks on each of h hosts.
  std::string_view formula;
};

/// All there are, collectives one after another.
std::span<const AlgorithmEntry> algorithms();

/// Whether a collective can run step by step in this way.
bool can_run(CollectiveKind kind, Algorithm algorithm);

/// Of broadcast, scatter, gather and reduce one rank is the root; the others have none.
bool has_root(CollectiveKind kind);

/// All-reduce, all-gather, reduce-scatter and all-to-all: a rank's messages are one part in n of
/// the array, along a ring or straight.
bool goes_in_parts(CollectiveKind kind);

/// By the names of to_string. Throw InputError that lists those there are; an algorithm is one of
/// its collective's.
CollectiveKind collective_named(std::string_view name);
const AlgorithmEntry& algorithm_named(CollectiveKind kind, std::string_view name);

}  // namespace lockstep
