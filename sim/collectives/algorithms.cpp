#include "sim/collectives/algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/core/error.h"

namespace lockstep {
namespace {

using Kind = CollectiveKind;

constexpr std::string_view kScattering = "(n-1) (a + S/n/B + S/n/R)";
constexpr std::string_view kAtOnce = "a + (n-1) S/n/B";
constexpr std::string_view kDownTree = "ceil(log2 n) (a + S/B)";
constexpr std::string_view kDoublingArrays = "ceil(log2 n) a + (n-1) S/B";
constexpr std::string_view kSegments = "(n-2+k) (a + S/k/B)";

constexpr AlgorithmEntry kAlgorithms[] = {
    {Kind::broadcast, Algorithm::linear, "a + (n-1) S/B"},
    {Kind::broadcast, Algorithm::tree, kDownTree},
    {Kind::broadcast, Algorithm::chain, kSegments},
    {Kind::broadcast, Algorithm::double_tree, "at most steps x (a + S/k/B)"},
    {Kind::scatter, Algorithm::linear, "a + (n-1) S/B"},
    {Kind::scatter, Algorithm::tree, kDoublingArrays},
    {Kind::gather, Algorithm::linear, "a + (n-1) S/B"},
    {Kind::gather, Algorithm::tree, kDoublingArrays},
    {Kind::all_gather, Algorithm::linear, kAtOnce},
    {Kind::all_gather, Algorithm::ring, "(n-1) (a + S/n/B)"},
    {Kind::all_gather, Algorithm::recursive_doubling, "log2(n) a + (n-1) S/n/B; other n fold"},
    {Kind::reduce, Algorithm::linear, "a + (n-1) (S/B + S/R)"},
    {Kind::reduce, Algorithm::tree, "ceil(log2 n) (a + S/B + S/R)"},
    {Kind::reduce, Algorithm::chain, "(n-2+k) (a + S/k/B + S/k/R)"},
    {Kind::reduce, Algorithm::double_tree, "at most steps x (a + S/k/B + S/k/R)"},
    {Kind::reduce_scatter, Algorithm::linear, "a + (n-1) (S/n/B + S/n/R)"},
    {Kind::reduce_scatter, Algorithm::ring, kScattering},
    {Kind::reduce_scatter, Algorithm::recursive_halving,
     "log2(n) a + (n-1) (S/n/B + S/n/R); other n fold"},
    {Kind::reduce_scatter, Algorithm::pairwise, kScattering},
    {Kind::all_reduce, Algorithm::linear, "2a + (n-1) (2 S/B + S/R)"},
    {Kind::all_reduce, Algorithm::tree, "ceil(log2 n) (2a + 2 S/B + S/R)"},
    {Kind::all_reduce, Algorithm::ring, "(n-1) (2a + 2 S/n/B + S/n/R)"},
    {Kind::all_reduce, Algorithm::gloo_ring, "a ring's, segments overlapping"},
    {Kind::all_reduce, Algorithm::recursive_doubling, "log2(n) (a + S/B + S/R); other n fold"},
    {Kind::all_reduce, Algorithm::halving_doubling,
     "2 log2(n) a + (n-1) (2 S/n/B + S/n/R); other n fold"},
    {Kind::all_reduce, Algorithm::hierarchical,
     "(g-1) (2a + 2 S/g/B + S/g/R) + (h-1) (2a + 2 S/g/h/B + S/g/h/R)"},
    {Kind::all_reduce, Algorithm::double_tree, "at most steps x (a + S/k/B), half of them + S/k/R"},
    {Kind::all_to_all, Algorithm::linear, kAtOnce},
    {Kind::all_to_all, Algorithm::pairwise, "(n-1) (a + S/n/B)"},
};

constexpr Kind kKinds[] = {Kind::broadcast,  Kind::scatter,   Kind::gather,
                           Kind::all_gather, Kind::reduce,    Kind::reduce_scatter,
                           Kind::all_reduce, Kind::all_to_all};

}  // namespace

std::span<const AlgorithmEntry> algorithms() {
  return kAlgorithms;
}

bool can_run(CollectiveKind kind, Algorithm algorithm) {
  // Broadcasts along a ring go down its chain.
  if (kind == Kind::broadcast && algorithm == Algorithm::ring) return true;
  return std::ranges::any_of(kAlgorithms, [&](const AlgorithmEntry& entry) {
    return entry.kind == kind && entry.algorithm == algorithm;
  });
}

bool has_root(CollectiveKind kind) {
  return kind == Kind::broadcast || kind == Kind::scatter || kind == Kind::gather ||
         kind == Kind::reduce;
}

bool goes_in_parts(CollectiveKind kind) {
  return kind == Kind::all_reduce || kind == Kind::all_gather || kind == Kind::reduce_scatter ||
         kind == Kind::all_to_all;
}

CollectiveKind collective_named(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Kind kind : kKinds) {
    if (to_string(kind) == name) return kind;
    known.push_back(to_string(kind));
  }
  throw InputError({}, "", fmt::format("'{}' is no collective", name.substr(0, 40)),
                   fmt::format("one of {}", fmt::join(known, ", ")));
}

const AlgorithmEntry& algorithm_named(CollectiveKind kind, std::string_view name) {
  std::vector<std::string_view> known;
  for (const AlgorithmEntry& entry : kAlgorithms) {
    if (entry.kind != kind) continue;
    if (to_string(entry.algorithm) == name) return entry;
    known.push_back(to_string(entry.algorithm));
  }
  throw InputError({}, "--algorithm",
                   fmt::format("'{}' is no algorithm of {}", name.substr(0, 40), to_string(kind)),
                   fmt::format("one of {}", fmt::join(known, ", ")));
}

}  // namespace lockstep
