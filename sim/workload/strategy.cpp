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
    Strategy{.name = "parameter_server", .has_servers = true, .write = write_parameter_server},
    Strategy{.name = "horovod", .has_cycles = true, .compile = compile_horovod},
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

TaskGraph compile_workers(
    const Workload& workload,
    const std::function<void(WorkerProgram& worker, std::uint32_t profile)>& write) {
  GraphParts parts(workload);
  std::vector<Program> programs;
  for (std::uint32_t profile = 0; profile < workload.profiles.size(); ++profile) {
    WorkerProgram worker(workload, profile, parts);
    worker.begin_step();
    write(worker, profile);
    programs.push_back(worker.end_step());
  }
  return parts.finish(workload, std::move(programs));
}

TaskGraph compile(const Workload& workload, Phase phase) {
  const Strategy& strategy = strategy_named(workload.strategy.kind);
  LOCKSTEP_ASSERT(!strategy.has_root || workload.root_profile, "rank 0 has a profile of its own");
  if (strategy.compile != nullptr) return strategy.compile(workload, phase);
  return compile_workers(workload, [&](WorkerProgram& worker, std::uint32_t /*profile*/) {
    strategy.write(worker, workload, phase);
  });
}

}  // namespace lockstep
