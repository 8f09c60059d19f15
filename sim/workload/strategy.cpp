#include "sim/workload/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/core/error.h"

namespace lockstep {
namespace {

constexpr std::array kStrategies{
    Strategy{.name = "single", .has_buckets = false, .write = write_single},
    Strategy{.name = "ddp", .has_buckets = true, .write = write_ddp},
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
  for (const Profile& profile : workload.profiles) {
    WorkerProgram worker(workload, profile, parts);
    worker.begin_step();
    strategy.write(worker, workload, phase);
    programs.push_back(worker.end_step());
  }
  return parts.finish(workload, std::move(programs));
}

}  // namespace lockstep
