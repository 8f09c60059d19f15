#include "sim/scenario/point.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "sim/collectives/costs.h"
#include "sim/collectives/table.h"
#include "sim/core/error.h"
#include "sim/workload/profile_choice.h"

namespace lockstep {
namespace {

/// A ring has 2(n-1)n messages: beyond this it would take longer than its answer is worth.
constexpr int kMostStepwise = 64;

int devices_per_host(const PlatformOptions& platform, int workers) {
  if (platform.devices_per_host > 0) return std::min(platform.devices_per_host, workers);
  return platform.network ? 1 : workers;
}

/// Workers on the host of this rank; hosts are filled one after another.
int beside(const PlatformOptions& platform, int workers, int rank) {
  const int devices = devices_per_host(platform, workers);
  const int first = rank / devices * devices;
  return std::min(devices, workers - first);
}

bool over_network(const PlatformOptions& platform, int workers) {
  if (workers < 2 || !platform.network) return false;
  if (platform.collective) return *platform.collective == CollectiveModel::ring;
  return devices_per_host(platform, workers) < workers;
}

Factor slowdown_of(const Scenario& scenario, int rank) {
  const auto found = std::ranges::find(scenario.stragglers, rank, &Straggler::worker);
  return found == scenario.stragglers.end() ? Factor{} : found->slowdown;
}

bool has_table(const Calibration& calibration, CollectiveKind kind) {
  return std::ranges::any_of(calibration.collectives, [kind](const CollectiveTable& table) {
    return table.collective == to_string(kind) && !table.points.empty();
  });
}

Bytes smallest_measured(const Calibration& calibration, CollectiveKind kind) {
  Bytes smallest{std::numeric_limits<std::int64_t>::max()};
  for (const CollectiveTable& table : calibration.collectives) {
    if (table.collective != to_string(kind) || table.points.empty()) continue;
    smallest = std::min(smallest, table.points.front().bytes);
  }
  return smallest;
}

struct MeasuredCost {
  Time device, host;
  Basis basis = Basis::measured;
};

MeasuredCost measured_cost(const Calibration& calibration, CollectiveKind kind, int workers,
                           Bytes bytes) {
  if (kind == CollectiveKind::broadcast && !has_table(calibration, kind)) {
    // A ring all-reduce is a reduce-scatter and an all-gather; each moves what a broadcast moves.
    MeasuredCost cost = measured_cost(calibration, CollectiveKind::all_reduce, workers, bytes);
    cost.device = Time::picoseconds(multiply_divide(cost.device.ps(), 1, 2));
    cost.basis = Basis::extrapolated;
    return cost;
  }
  const TableCost cost = estimate(calibration.collectives, kind, workers, bytes);
  // Below the smallest measured size latency is all there is, and that was measured.
  const bool too_large = cost.beyond_sizes && bytes > smallest_measured(calibration, kind);
  return {.device = cost.device,
          .host = cost.host,
          .basis = cost.other_workers || too_large ? Basis::extrapolated : Basis::measured};
}

/// What a message costs beside the network: as the table measured on one host has it.
StepCost message_cost(const Calibration& calibration, CollectiveKind kind, int workers,
                      Bytes bytes) {
  if (!has_table(calibration, kind)) return {};
  return effective_step(calibration.collectives, kind, workers, bytes);
}

PlainNetwork describe_network(const PlatformOptions& platform, int workers) {
  // Within a host the table's own rate and latency hold, so that its links are no limit.
  constexpr Bandwidth kNoLimit{8'000'000'000'000};
  PlainNetwork plain;
  plain.workers = static_cast<std::uint32_t>(workers);
  plain.devices_per_host = static_cast<std::uint32_t>(devices_per_host(platform, workers));
  plain.device_bandwidth = kNoLimit;
  plain.host_bandwidth = platform.network->bandwidth;
  plain.host_latency = platform.network->latency;
  return plain;
}

/// The largest chunk decides each step, and the way between two hosts the slowest hop.
void take_formula(Collective& collective, const NetworkOptions& network, int workers) {
  StepCost& step = collective.step;
  step.latency += network.latency * 2;  // to the switch, and from it
  step.rate = step.rate > Bandwidth{} ? std::min(step.rate, network.bandwidth) : network.bandwidth;
  collective.duration = formula_time(collective, static_cast<std::uint32_t>(workers));
  collective.expanded = false;
}

/// How the strategy learns what its collectives cost.
std::function<CollectiveCost(CollectiveKind, Bytes)> collective_costs(
    const Calibration& calibration, const PlatformOptions& platform, int workers) {
  const bool ring = over_network(platform, workers);
  return
      [&calibration, network = platform.network, workers, ring](CollectiveKind kind, Bytes bytes) {
        CollectiveCost cost;
        cost.collective.kind = kind;
        cost.collective.bytes = bytes;
        if (!ring || has_table(calibration, kind)) {
          const MeasuredCost measured = measured_cost(calibration, kind, workers, bytes);
          cost.collective.duration = measured.device;
          cost.host = measured.host;
        }
        if (ring) {
          cost.collective.step = message_cost(calibration, kind, workers, bytes);
          cost.collective.expanded = true;
          if (workers > kMostStepwise) take_formula(cost.collective, *network, workers);
        }
        return cost;
      };
}

CopyTable copy_table(const Calibration& calibration, const std::string& what) {
  const auto found = std::ranges::find(calibration.copies, what, &CopyTable::what);
  return found == calibration.copies.end() ? CopyTable{} : *found;
}

Workload common_workload(const Scenario& scenario, const Calibration& calibration, int workers) {
  Workload workload;
  workload.cpu = on_cpu(calibration);
  if (workload.cpu && scenario.graph) {
    throw InputError({}, "graph", "workers on cores have no graphs to launch", "set graph: false");
  }
  workload.strategy = scenario.strategy;
  if (workers == 1) workload.strategy.kind = "single";
  workload.sync = scenario.sync;
  workload.graph = scenario.graph;
  workload.input = scenario.input;
  workload.launch_queue = calibration.launch_queue;
  workload.interference = calibration.interference;
  workload.bucket_in = copy_table(calibration, "bucket_in");
  return workload;
}

/// The profile of a rank, added to the workload unless a rank before it has the same.
std::uint32_t profile_index(const Scenario& scenario, const Calibration& calibration, int rank,
                            std::map<std::pair<int, int>, std::uint32_t>& known, Point& point) {
  const int batch = batch_of(scenario, point.workers, rank);
  const int neighbours = beside(scenario.platform, point.workers, rank);
  std::vector<Profile>& profiles = point.workload.profiles;
  const auto [entry, added] =
      known.emplace(std::pair{batch, neighbours}, static_cast<std::uint32_t>(profiles.size()));
  if (added) {
    ProfileChoice choice = choose_profile(calibration, {.model = scenario.model,
                                                        .precision = scenario.precision,
                                                        .batch = batch,
                                                        .graph = scenario.graph,
                                                        .beside = neighbours});
    point.basis = std::max(point.basis, choice.basis);
    profiles.push_back(std::move(choice.profile));
  }
  return entry->second;
}

/// All gradients n times over each link, more than any strategy moves, must not take days: such a
/// network is a wrong unit, and its times would leave the clock's range.
void require_network_of_use(const NetworkOptions& network, const Point& point) {
  constexpr double kMostSeconds = 1e6;
  const Profile& profile = point.workload.profiles.front();
  const Bytes bytes = parameter_bytes(profile) + buffer_bytes(profile).floats;
  const double rate = static_cast<double>(network.bandwidth.bytes_per_second);
  if (static_cast<double>(bytes.count) * point.workers / rate <= kMostSeconds) return;
  throw InputError({}, "platform.network.bandwidth",
                   fmt::format("{} is too slow for {} workers of a model of {}",
                               to_string(network.bandwidth), point.workers, to_string(bytes)),
                   "check its unit: 25GB/s, 200Mbit/s");
}

}  // namespace

Point make_point(const Scenario& scenario, const Calibration& calibration, int workers) {
  Point point;
  point.workers = workers;
  point.workload = common_workload(scenario, calibration, workers);
  std::map<std::pair<int, int>, std::uint32_t> known;
  for (int rank = 0; rank < workers; ++rank) {
    const Factor slowdown = slowdown_of(scenario, rank);
    point.workload.profile_of_worker.push_back(
        profile_index(scenario, calibration, rank, known, point));
    point.slowdowns.push_back({.host = slowdown, .device = slowdown});
  }
  const bool network = over_network(scenario.platform, workers);
  if (network) require_network_of_use(*scenario.platform.network, point);
  if (network && workers <= kMostStepwise) {
    point.network =
        std::make_unique<Network>(plain_network(describe_network(scenario.platform, workers)));
  }
  point.workload.collective = collective_costs(calibration, scenario.platform, workers);
  return point;
}

Basis collective_basis(const Scenario& scenario, const Calibration& calibration, int workers,
                       const std::vector<Collective>& collectives) {
  if (collectives.empty()) return Basis::measured;
  if (over_network(scenario.platform, workers)) return Basis::extrapolated;
  Basis basis = Basis::measured;
  for (const Collective& collective : collectives) {
    basis = std::max(basis,
                     measured_cost(calibration, collective.kind, workers, collective.bytes).basis);
  }
  return basis;
}

}  // namespace lockstep
