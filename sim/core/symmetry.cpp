#include "sim/core/symmetry.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "sim/collectives/costs.h"
#include "sim/collectives/steps.h"
#include "sim/platform/network.h"

namespace lockstep {
namespace {

ReducedRun unreduced(const TaskGraph& graph, const EngineOptions& options) {
  ReducedRun run{graph, options, std::vector<std::uint32_t>(graph.program_of_worker.size())};
  std::iota(run.class_of_worker.begin(), run.class_of_worker.end(), 0u);
  return run;
}

/// What every message of a ring meets, the same for all ranks.
struct Hop {
  Time latency;
  Bandwidth bandwidth;
  bool operator==(const Hop&) const = default;
};

std::optional<Hop> uniform_hop(const Network& network) {
  std::optional<Hop> common;
  std::vector<bool> used(network.links().size(), false);
  for (std::uint32_t rank = 0; rank < network.workers(); ++rank) {
    const Route route = network.route(rank, (rank + 1) % network.workers());
    Hop hop{route.latency, {std::numeric_limits<std::int64_t>::max()}};
    for (const std::uint32_t link : route.links) {
      if (used[link]) return std::nullopt;
      used[link] = true;
      hop.bandwidth = std::min(hop.bandwidth, network.links()[link]);
    }
    if (common && *common != hop) return std::nullopt;
    common = hop;
  }
  return common;
}

/// Replaces collectives run step by step by their time. False where they have no common time.
bool collapse(TaskGraph& graph, const Network* network, std::uint32_t ranks) {
  const auto expanded = [](const Collective& collective) { return collective.expanded; };
  if (std::none_of(graph.collectives.begin(), graph.collectives.end(), expanded)) return true;
  if (network == nullptr || ranks < 2 || graph.collective_beside_compute != Factor{}) return false;
  const std::optional<Hop> hop = uniform_hop(*network);
  if (!hop) return false;
  for (Collective& collective : graph.collectives) {
    if (!collective.expanded) continue;
    if (!StepPlan(collective, ranks).even()) return false;
    StepCost& step = collective.step;
    step.latency += hop->latency;
    step.rate = step.rate > Bandwidth{} ? std::min(step.rate, hop->bandwidth) : hop->bandwidth;
    collective.duration = formula_time(collective, ranks);
    collective.expanded = false;
  }
  return true;
}

/// What is drawn alike for all workers tells none of them apart.
bool draws_by_worker(const TaskGraph& graph, const EngineOptions& options) {
  const auto differs = [](const auto& drawn) { return differs_by_worker(drawn.variability); };
  return std::any_of(graph.delays.begin(), graph.delays.end(), differs) ||
         std::any_of(options.drawn.begin(), options.drawn.end(), [&](const auto& together) {
           return std::any_of(together.begin(), together.end(), differs);
         });
}

}  // namespace

ReducedRun reduce_symmetric(const TaskGraph& graph, const EngineOptions& options) {
  const NoiseLevels& noise = options.noise;
  if (noise.process > 0 || noise.step > 0 || noise.task > 0 || graph.backups > 0 ||
      draws_by_worker(graph, options)) {
    return unreduced(graph, options);
  }
  using Key = std::tuple<std::uint32_t, Factor, Factor, std::uint32_t>;
  std::map<Key, std::uint32_t> classes;
  ReducedRun run{graph, options, {}};
  run.graph.program_of_worker.clear();
  run.options.slowdowns.clear();
  for (std::uint32_t w = 0; w < graph.program_of_worker.size(); ++w) {
    const Slowdown slowdown = w < options.slowdowns.size() ? options.slowdowns[w] : Slowdown{};
    const Key key{graph.program_of_worker[w], slowdown.host, slowdown.device, slowdown.drawn};
    const auto [entry, added] = classes.emplace(key, static_cast<std::uint32_t>(classes.size()));
    run.class_of_worker.push_back(entry->second);
    if (!added) continue;
    run.graph.program_of_worker.push_back(graph.program_of_worker[w]);
    run.options.slowdowns.push_back(slowdown);
  }
  const auto expanded = [](const Collective& collective) { return collective.expanded; };
  const bool stepwise = std::any_of(graph.collectives.begin(), graph.collectives.end(), expanded);
  const auto ranks = static_cast<std::uint32_t>(graph.program_of_worker.size());
  if (stepwise && (classes.size() > 1 || !collapse(run.graph, options.network, ranks))) {
    return unreduced(graph, options);
  }
  return run;
}

}  // namespace lockstep
