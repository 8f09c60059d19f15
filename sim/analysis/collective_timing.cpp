#include "sim/analysis/collective_timing.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/collectives/costs.h"
#include "sim/core/engine.h"
#include "sim/core/error.h"
#include "sim/platform/network.h"
#include "sim/platform/sharing.h"

namespace lockstep {
namespace {

/// Were all messages to go one after the other, through links that all ranks share.
void refuse_long(const Schedule& schedule, const CollectivePlatform& platform) {
  const StepCost& step = schedule.collective.step;
  const auto seconds = [](Bytes bytes, Bandwidth rate) {
    return rate > Bandwidth{}
               ? static_cast<double>(bytes.count) / static_cast<double>(rate.bytes_per_second)
               : 0.0;
  };
  double longest = 0;
  for (const ScheduledMessage& message : schedule.messages) {
    longest += step.latency.seconds() + seconds(message.bytes, platform.between_hosts) +
               seconds(message.bytes, platform.in_host.value_or(Bandwidth{})) +
               seconds(message.bytes, step.rate) + seconds(message.bytes, step.reduction);
  }
  constexpr double kWeek = 7 * 24 * 3600.0;
  if (longest < kWeek) return;
  throw InputError({}, "bandwidth", "the collective could last longer than a week",
                   "more bandwidth or fewer bytes");
}

/// The network looks for a way between each pair that exchanges messages, through all its nodes: 50
/// million take some 4 seconds.
void refuse_slow(const Schedule& schedule) {
  constexpr std::uint64_t kMost = 50'000'000;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const ScheduledMessage& message : schedule.messages) {
    pairs.emplace_back(message.from, message.to);
  }
  std::ranges::sort(pairs);
  const auto repeated = std::ranges::unique(pairs);
  const std::uint64_t ways = pairs.size() - repeated.size();
  if (ways * schedule.ranks <= kMost) return;
  throw InputError({}, "ranks",
                   fmt::format("{} of them, with {} ways between them, take too long to be timed",
                               schedule.ranks, ways),
                   "take fewer, or leave out the bandwidth");
}

/// Workers that do nothing but this collective.
TaskGraph only(const Schedule& schedule) {
  ProgramBuilder builder;
  builder.add({.collective = 0, .kind = TaskKind::collective, .lane = Lane::communication});
  TaskGraph graph;
  graph.programs = {builder.build()};
  graph.program_of_worker.assign(schedule.ranks, 0);
  graph.collectives = {schedule.collective};
  graph.collectives.front().expanded = true;
  return graph;
}

/// The links' part taken into the cost of a message.
StepCost over(Bandwidth link, StepCost step) {
  step.rate = step.rate > Bandwidth{} ? std::min(step.rate, link) : link;
  return step;
}

Network network_of(const Schedule& schedule, const CollectivePlatform& platform) {
  return Network(plain_network({.workers = schedule.ranks,
                                .devices_per_host = platform.per_host,
                                .device_bandwidth = platform.in_host.value_or(kFastestLink),
                                .host_bandwidth = platform.between_hosts}));
}

}  // namespace

void time_messages(Schedule& schedule, const CollectivePlatform& platform) {
  refuse_long(schedule, platform);
  refuse_slow(schedule);
  schedule.timed = true;
  if (schedule.messages.empty()) return;
  const Network network = network_of(schedule, platform);
  EngineOptions options;
  options.network = &network;
  options.record_messages = true;
  EngineResult result = run(only(schedule), options);
  const auto place = [](const auto& message) {
    return std::tuple(message.step, message.from, message.to);
  };
  std::ranges::sort(result.messages, {}, place);
  LOCKSTEP_ASSERT(result.messages.size() == schedule.messages.size(),
                  "the engine sends what the schedule lists");
  for (std::size_t i = 0; i < result.messages.size(); ++i) {
    ScheduledMessage& message = schedule.messages[i];
    LOCKSTEP_ASSERT(place(message) == place(result.messages[i]),
                    "the engine sends what the schedule lists");
    message.start = result.messages[i].start;
    message.end = result.messages[i].end;
  }
  for (const auto& steps : result.step_end) schedule.time = std::max(schedule.time, steps.back());
}

std::optional<Time> expected_time(const Schedule& schedule, const CollectivePlatform& platform) {
  const Bandwidth in_host = platform.in_host.value_or(kFastestLink);
  Collective collective = schedule.collective;
  if (collective.algorithm == Algorithm::hierarchical) {
    const std::uint32_t sharing =
        schedule.ranks % collective.per_host == 0 ? collective.per_host : 1;
    const Bandwidth share{
        std::max<std::int64_t>(platform.between_hosts.bytes_per_second / sharing, 1)};
    return hierarchical_time(collective, schedule.ranks, over(in_host, collective.step),
                             over(std::min(share, in_host), collective.step));
  }
  if (platform.per_host > 1) return std::nullopt;
  collective.step = over(std::min(platform.between_hosts, in_host), collective.step);
  return formula_time(collective, schedule.ranks);
}

}  // namespace lockstep
