#include "sim/scenario/point.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <utility>

#include "sim/core/error.h"
#include "sim/scenario/collective_costs.h"
#include "sim/scenario/one_process.h"
#include "sim/workload/profile_choice.h"
#include "sim/workload/strategy.h"

namespace lockstep {
namespace {

/// Workers that share the cores of this rank's host, or of the machine that plays all hosts.
int beside(const Scenario& scenario, int workers, int rank) {
  if (scenario.platform.emulated && scenario.compute == Compute::real) return workers;
  const int devices = devices_per_host(scenario.platform, workers);
  const int first = rank / devices * devices;
  return std::min(devices, workers - first);
}

const Straggler* straggler_at(const Scenario& scenario, int rank) {
  const auto found = std::ranges::find(scenario.stragglers, rank, &Straggler::worker);
  return found == scenario.stragglers.end() ? nullptr : &*found;
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
  if (strategy_named(scenario.strategy.kind).has_cycles && scenario.graph) {
    throw InputError({}, "graph", "what Horovod reduces together is decided anew in every step",
                     "set graph: false");
  }
  workload.strategy = scenario.strategy;
  if (workers == 1) workload.strategy.kind = "single";
  if (strategy_named(workload.strategy.kind).one_process) {
    check_one_process(scenario, calibration, workers);
  }
  workload.sync = scenario.sync;
  workload.graph = scenario.graph;
  workload.input = scenario.input.on;
  workload.loaders = scenario.input.workers;
  workload.launch_queue = calibration.launch_queue;
  // A worker that waits instead of computing takes nothing from the others.
  if (scenario.compute == Compute::real) workload.interference = calibration.interference;
  workload.bucket_in = copy_table(calibration, "bucket_in");
  workload.add = copy_table(calibration, "add");
  // Adding reads two arrays and writes one, a copy reads one: without its own table, the copy's.
  if (workload.add.points.empty()) workload.add = workload.bucket_in;
  return workload;
}

/// What tells the programs of two ranks apart.
struct ProfileKey {
  int batch = 0, neighbours = 0;
  bool root = false;
  const Straggler* delayed = nullptr;
  auto operator<=>(const ProfileKey&) const = default;
};

void set_input(const InputOptions& input, const Calibration& calibration, Profile& profile) {
  if (input.load) profile.input_load = *input.load;
  if (input.copy) profile.input_copy = *input.copy;
  if (input.copy || profile.input_copy > Time{} || on_cpu(calibration)) return;
  profile.input_copy =
      copy_cost(copy_table(calibration, "host_to_device"), profile.input_bytes).device;
}

/// The delay as the program holds it: the worker's slow-down will stretch it to what was asked for.
StepDelay delay_of(const Straggler& straggler) {
  const auto by = static_cast<std::int64_t>(straggler.slowdown.raw());
  constexpr std::int64_t kOne = std::int64_t{1} << 32;
  return {.part = straggler.part,
          .time = Time::picoseconds(multiply_divide(straggler.delay.ps(), kOne, by))};
}

/// How much slower the rank's host is than the profile's; beyond the ranks measured side by side,
/// theirs repeat. Who works alone has a host as any other.
Factor host_factor(const Profile& profile, int workers, int rank) {
  const std::vector<double>& hosts = profile.host_of_rank;
  if (workers == 1 || hosts.empty()) return {};
  return Factor::of(hosts[static_cast<std::size_t>(rank) % hosts.size()]);
}

/// Adds the profile of each rank to the workload, unless a rank before it has the same.
class ProfileList {
 public:
  ProfileList(const Scenario& scenario, const Calibration& calibration, Point& point)
      : scenario_(scenario),
        calibration_(calibration),
        point_(point),
        strategy_(strategy_named(point.workload.strategy.kind)) {}

  void add(int rank) {
    const Straggler* straggler = straggler_at(scenario_, rank);
    const bool delayed = straggler != nullptr && straggler->delay > Time{};
    const ProfileKey key{.batch = batch_of(scenario_, point_.workers, rank),
                         .neighbours = beside(scenario_, point_.workers, rank),
                         .root = strategy_.has_root && rank == 0,
                         .delayed = delayed ? straggler : nullptr};
    Workload& workload = point_.workload;
    const auto [entry, added] =
        known_.emplace(key, static_cast<std::uint32_t>(workload.profiles.size()));
    workload.profile_of_worker.push_back(entry->second);
    if (added) {
      workload.profiles.push_back(chosen(key));
      workload.delays.push_back(delayed ? delay_of(*straggler) : StepDelay{});
      if (key.root) workload.root_profile = entry->second;
    }
    const Factor slowdown = straggler != nullptr ? straggler->slowdown : Factor{};
    // Threads of one process run on its cores.
    const int host_of = strategy_.one_process ? 0 : rank;
    const Factor host = host_factor(workload.profiles[entry->second], point_.workers, host_of);
    point_.slowdowns.push_back({.host = slowdown * host, .device = slowdown});
  }

 private:
  Profile chosen(const ProfileKey& key) {
    ProfileChoice choice = choose_profile(calibration_, {.model = scenario_.model,
                                                         .precision = scenario_.precision,
                                                         .batch = key.batch,
                                                         .graph = scenario_.graph,
                                                         .beside = key.neighbours,
                                                         .slow_motion = scenario_.slow_motion});
    point_.basis = std::max(point_.basis, choice.basis);
    set_input(scenario_.input, calibration_, choice.profile);
    // One process loads the shares of all its devices.
    Time& load = choice.profile.input_load;
    if (strategy_.one_process) load = load * point_.workers;
    // A batch for each pass of a step.
    load = load * scenario_.strategy.accumulate;
    choice.profile.input_copy = choice.profile.input_copy * scenario_.strategy.accumulate;
    return std::move(choice.profile);
  }

  const Scenario& scenario_;
  const Calibration& calibration_;
  Point& point_;
  const Strategy& strategy_;
  std::map<ProfileKey, std::uint32_t> known_;
};

/// What a transfer takes from compute beside it is its share of what it could take on one host.
void soften(InterferenceFit& fit, double share) {
  const auto part = [share](double factor) { return 1 + (factor - 1) * share; };
  fit.transferring = part(fit.transferring);
  for (auto& kind : fit.by_layer_kind) kind.transferring = part(kind.transferring);
}

/// All gradients n times over each link, more than any strategy moves, must not take days: such a
/// network is a wrong unit, and its times would leave the clock's range.
void require_network_of_use(const NetworkOptions& network, const Point& point) {
  Bandwidth slowest = network.bandwidth;
  for (const SlowLink& slow : network.slow_links) slowest = std::min(slowest, slow.link);
  constexpr double kMostSeconds = 1e6;
  const Profile& profile = point.workload.profiles.front();
  const Bytes bytes = parameter_bytes(profile) + buffer_bytes(profile).floats;
  const double rate = static_cast<double>(slowest.bytes_per_second);
  if (static_cast<double>(bytes.count) * point.workers / rate <= kMostSeconds) return;
  throw InputError({}, "platform.network.bandwidth",
                   fmt::format("{} is too slow for {} workers of a model of {}", to_string(slowest),
                               point.workers, to_string(bytes)),
                   "check its unit: 25GB/s, 200Mbit/s");
}

/// Hosts that agree on something small: there and back along a tree, each message through a switch.
Time control_round(Time latency, int workers) {
  const auto depth = std::bit_width(static_cast<unsigned>(workers - 1));
  return latency * 2 * 2 * depth;
}

}  // namespace

Point make_point(const Scenario& scenario, const Calibration& calibration, int workers) {
  Point point;
  point.workers = workers;
  point.workload = common_workload(scenario, calibration, workers);
  ProfileList profiles(scenario, calibration, point);
  for (int rank = 0; rank < workers; ++rank) profiles.add(rank);
  if (workers == 1) return point;
  point.workload.slowdowns = point.slowdowns;
  const auto costs = std::make_shared<const CollectiveCosts>(scenario, calibration, workers);
  const std::optional<NetworkOptions>& network = scenario.platform.network;
  if (costs->stepwise()) require_network_of_use(*network, point);
  point.network = costs->network();
  point.workload.network = point.network.get();
  if (network) point.workload.control_round = control_round(network->latency, workers);
  if (on_cpu(calibration)) {
    const double slowdown = std::max(1.0, calibration.interference.collective_beside_compute);
    soften(point.workload.interference, costs->network_share(slowdown));
  }
  // One thread that drives all devices launches each one's part.
  const int launches = strategy_named(scenario.strategy.kind).one_process ? workers : 1;
  point.workload.collective = [costs, launches](CollectiveKind kind, Bytes bytes) {
    const CollectiveCosts::Call call = costs->call(kind, bytes);
    return CollectiveCost{costs->collective(kind, bytes), call.host * launches, call.between};
  };
  return point;
}

Basis collective_basis(const Scenario& scenario, const Calibration& calibration, int workers,
                       const std::vector<Collective>& collectives) {
  Basis basis = Basis::measured;
  if (collectives.empty()) return basis;
  const CollectiveCosts costs(scenario, calibration, workers);
  for (const Collective& collective : collectives) {
    basis = std::max(basis, costs.basis(collective.kind, collective.bytes));
  }
  return basis;
}

}  // namespace lockstep
