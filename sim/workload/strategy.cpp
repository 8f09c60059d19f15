#include "sim/workload/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/core/error.h"

namespace lockstep {
namespace {

constexpr std::array kStrategies{
    Strategy{.name = "single", .write = write_single},
    Strategy{.name = "gather_scatter", .has_root = true, .write = write_gather_scatter},
    Strategy{.name = "all_reduce", .write = write_all_reduce},
    Strategy{.name = "ddp", .has_buckets = true, .write = write_ddp},
    Strategy{.name = "data_parallel",
             .has_root = true,
             .one_process = true,
             .write = write_data_parallel},
    Strategy{.name = "heterogeneous", .write = write_heterogeneous},
};

}  // namespace

std::vector<std::string_view> strategy_names() {
  std::vector<std::string_view> names;
  for (const Strategy& strategy : kStrategies) names.push_back(strategy.name);
  return names;
}

const Strategy& strategy_named(std::string_view name) {
  const auto* found = std::ranges::find(kStrategies, name, &Strategy::name);
  if (found != kStrategies.end()) return *found;
  throw InputError({}, "strategy", fmt::format("'{}' is not known", name),
                   fmt::format("known are {}", fmt::join(strategy_names(), ", ")));
}

TaskGraph compile(const Workload& workload, Phase phase) {
  const Strategy& strategy = strategy_named(workload.strategy.kind);
  GraphParts parts(workload);
  std::vector<Program> programs;
  LOCKSTEP_ASSERT(!strategy.has_root || workload.root_profile, "rank 0 has a profile of its own");
  for (std::uint32_t profile = 0; profile < workload.profiles.size(); ++profile) {
    WorkerProgram worker(workload, profile, parts);
    worker.begin_step();
    strategy.write(worker, workload, phase);
    programs.push_back(worker.end_step());
  }
  return parts.finish(workload, std::move(programs));
}

}  // namespace lockstep
