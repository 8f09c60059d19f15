#include "sim/scenario/point.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "sim/core/error.h"
#include "sim/scenario/collective_costs.h"
#include "sim/scenario/devices.h"
#include "sim/scenario/one_process.h"
#include "sim/workload/fusion.h"
#include "sim/workload/profile_choice.h"
#include "sim/workload/strategy.h"

namespace lockstep {
namespace {

/// Workers that share the cores of this rank's host, or of the machine that plays all hosts.
int beside(const Scenario& scenario, int workers, int rank) {
  if (workers > 1 && !scenario.devices.empty()) {
    return scenario.devices[device_place(scenario, rank).device_class].count;
  }
  if (scenario.platform.emulated && scenario.compute == Compute::real) return workers;
  const int devices = devices_per_host(scenario.platform, workers);
  const int first = rank / devices * devices;
  return std::min(devices, workers - first);
}

/// Those of this rank, as their places in the scenario, which also tell their draws apart.
std::vector<std::uint32_t> stragglers_at(const Scenario& scenario, int rank) {
  std::vector<std::uint32_t> places;
  for (std::uint32_t i = 0; i < scenario.stragglers.size(); ++i) {
    if (applies_to(scenario.stragglers[i], rank)) places.push_back(i);
  }
  return places;
}

CopyTable copy_table(const Calibration& calibration, const std::string& what) {
  const CopyTable* table = copies_of(calibration, what);
  return table == nullptr ? CopyTable{} : *table;
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
  if (workers > 1) workload.backup_workers = scenario.backup_workers;
  const bool has_servers = strategy_named(scenario.strategy.kind).has_servers;
  if (workers == 1 && !has_servers) workload.strategy.kind = "single";
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

/// Of the noise of unlike workers, a stream that no straggler has.
constexpr std::uint32_t kClassNoise = 1U << 20;

/// What tells the programs of two ranks apart.
struct ProfileKey {
  int batch = 0, neighbours = 0;
  bool root = false;
  std::size_t device_class = 0;
  bool adds = false;  ///< of unlike workers
  std::vector<StepDelay> delays = {};
  bool operator==(const ProfileKey&) const = default;
};

void set_input(const InputOptions& input, const Calibration& calibration, Profile& profile) {
  if (input.load) profile.input_load = *input.load;
  if (input.copy) profile.input_copy = *input.copy;
  if (input.copy || profile.input_copy > Time{} || on_cpu(calibration)) return;
  profile.input_copy =
      copy_cost(copy_table(calibration, "host_to_device"), profile.input_bytes).device;
}

/// What slows one rank, and what delays it.
struct RankStragglers {
  Factor slowdown;
  std::vector<DrawnFactor> drawn;
  std::vector<StepDelay> delays;
};

constexpr double kMostTogether = 1e6;

RankStragglers stragglers_of(const Scenario& scenario, int rank) {
  RankStragglers result;
  const std::vector<std::uint32_t> places = stragglers_at(scenario, rank);
  for (const std::uint32_t place : places) {
    const Straggler& straggler = scenario.stragglers[place];
    if (result.slowdown.value() * straggler.slowdown.value() > kMostTogether) {
      throw InputError({}, "stragglers", fmt::format("worker {} hardly moves", rank),
                       fmt::format("together they slow it at most {:.0f} times", kMostTogether));
    }
    result.slowdown = result.slowdown * straggler.slowdown;
    if (varies(straggler.slowdown_varies)) {
      result.drawn.push_back({.variability = straggler.slowdown_varies, .stream = place});
    }
  }
  const auto by = static_cast<std::int64_t>(result.slowdown.raw());
  constexpr std::int64_t kOne = std::int64_t{1} << 32;
  for (const std::uint32_t place : places) {
    const Straggler& straggler = scenario.stragglers[place];
    if (straggler.delay <= Time{}) continue;
    // The worker's slow-down would stretch what is not drawn: it is shortened to what was asked
    // for, which only a constant one allows.
    const bool drawn = varies(straggler.delay_varies) || !result.drawn.empty();
    const Time time = drawn ? straggler.delay
                            : Time::picoseconds(multiply_divide(straggler.delay.ps(), kOne, by));
    result.delays.push_back({.part = straggler.part,
                             .time = time,
                             .drawn = drawn,
                             .variability = straggler.delay_varies,
                             .stream = place});
  }
  return result;
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
    RankStragglers stragglers = stragglers_of(scenario_, rank);
    ProfileKey key{.batch = batch_of(scenario_, point_.workers, rank),
                   .neighbours = beside(scenario_, point_.workers, rank),
                   .root = strategy_.has_root && rank == 0,
                   .delays = std::move(stragglers.delays)};
    int in_class = rank;
    if (unlike()) {
      const DevicePlace place = device_place(scenario_, rank);
      key.device_class = place.device_class;
      key.adds = unlike_worker(scenario_, calibration_, rank, Bytes{1}).adds;
      in_class = place.in_class;
    }
    Workload& workload = point_.workload;
    const std::uint32_t place = place_of(key, rank);
    if (unlike()) add_class_noise(place, stragglers);
    workload.profile_of_worker.push_back(place);
    const Factor slowdown = stragglers.slowdown;
    // Threads of one process, too: what makes hosts differ within a process are their cores.
    const Factor host = host_factor(workload.profiles[place], point_.workers, in_class);
    point_.slowdowns.push_back({.host = slowdown * host,
                                .device = slowdown,
                                .drawn = drawn_place(std::move(stragglers.drawn))});
  }

 private:
  /// Of the profile with this key; adds it where there is none yet.
  std::uint32_t place_of(const ProfileKey& key, int rank) {
    const auto known = std::ranges::find(known_, key);
    const auto place = static_cast<std::uint32_t>(known - known_.begin());
    if (known != known_.end()) return place;
    known_.push_back(key);
    Workload& workload = point_.workload;
    workload.profiles.push_back(chosen(key, rank));
    if (unlike()) {
      const Bytes bytes = parameter_bytes(workload.profiles.back());
      workload.unlike.push_back(unlike_worker(scenario_, calibration_, rank, bytes));
    }
    workload.delays.push_back(key.delays);
    if (key.root) workload.root_profile = place;
    return place;
  }

  /// As Slowdown::drawn has it.
  std::uint32_t drawn_place(std::vector<DrawnFactor> drawn) {
    if (drawn.empty()) return 0;
    const auto known = std::ranges::find(point_.drawn, drawn);
    const auto place = static_cast<std::uint32_t>(known - point_.drawn.begin());
    if (known == point_.drawn.end()) point_.drawn.push_back(std::move(drawn));
    return place + 1;
  }

  bool unlike() const { return point_.workers > 1 && !scenario_.devices.empty(); }

  /// Each kind varies as its own calibration says.
  void add_class_noise(std::uint32_t profile, RankStragglers& stragglers) const {
    if (!scenario_.noise || scenario_.compute == Compute::replay) return;
    const double own = point_.workload.profiles[profile].spread_between_steps;
    const double level = own > 0 ? own : noise_[profile];
    if (level <= 0) return;
    stragglers.drawn.push_back(
        {.variability = {.kind = Variability::Kind::log_normal, .sigma = sigma_of(level)},
         .stream = kClassNoise});
  }

  Profile chosen(const ProfileKey& key, int rank) {
    const Calibration& costs = costs_of(scenario_, calibration_, point_.workers, rank);
    // Cores know no TF32.
    const bool exact = unlike() && on_cpu(costs) && scenario_.precision == "tf32";
    ProfileChoice choice = choose_profile(costs, {.model = scenario_.model,
                                                  .precision = exact ? "fp32" : scenario_.precision,
                                                  .batch = key.batch,
                                                  .graph = scenario_.graph,
                                                  .beside = key.neighbours,
                                                  .slow_motion = scenario_.slow_motion});
    noise_.push_back(costs.noise.step);
    point_.basis = std::max(point_.basis, choice.basis);
    set_input(scenario_.input, costs, choice.profile);
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
  std::vector<ProfileKey> known_;  ///< by profile
  std::vector<double> noise_;      ///< of its kind's steps, by profile
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

/// On one host, as it was measured with as many gradients. Not measured, it takes no time.
Time measured_agreement(const Calibration& calibration, const Profile& profile) {
  const Bytes bytes = negotiation_bytes(parameters_of(profile).size());
  return copy_cost(copy_table(calibration, "agreement"), bytes).host;
}

/// Of the gradients of all kinds of workers.
Bytes same_bytes(const std::vector<Profile>& profiles) {
  const Bytes bytes = parameter_bytes(profiles.front());
  for (const Profile& profile : profiles) {
    if (parameter_bytes(profile) == bytes) continue;
    throw InputError({}, "devices",
                     fmt::format("{} has parameters of {} on {} and of {} on {}", profile.model,
                                 to_string(bytes), profiles.front().device,
                                 to_string(parameter_bytes(profile)), profile.device),
                     "measure both with one version of the model");
  }
  return bytes;
}

}  // namespace

Point make_point(const Scenario& scenario, const Calibration& calibration, int workers) {
  Point point;
  point.workers = workers;
  point.workload = common_workload(scenario, calibration, workers);
  ProfileList profiles(scenario, calibration, point);
  for (int rank = 0; rank < workers; ++rank) profiles.add(rank);
  if (workers == 1) return point;
  // Gradients are exchanged among those that a step waits for.
  const int members = workers - scenario.backup_workers;
  if (!scenario.devices.empty()) {
    const Bytes bytes = same_bytes(point.workload.profiles);
    const auto& joined = scenario.platform.network;
    if (joined && !joined->measured) require_network_of_use(*joined, point);
    const BetweenSums between = between_sums(scenario, calibration, workers, bytes);
    point.basis = std::max(point.basis, between.basis);
    point.workload.collective = [cost = between.cost](CollectiveKind kind, Bytes size) {
      if (kind == CollectiveKind::all_reduce) return cost;
      return CollectiveCost{.collective = {.kind = kind, .bytes = size}, .host = {}};
    };
    return point;
  }
  point.workload.slowdowns = point.slowdowns;
  const auto costs = std::make_shared<const CollectiveCosts>(scenario, calibration, members);
  const std::optional<NetworkOptions>& network = scenario.platform.network;
  if (costs->stepwise()) require_network_of_use(*network, point);
  point.network = costs->network();
  point.workload.network = point.network.get();
  point.workload.control_round =
      network ? control_round(network->latency, workers)
              : measured_agreement(calibration, point.workload.profiles.front());
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
  if (collectives.empty() || !scenario.devices.empty()) return basis;  // in the point's own
  const CollectiveCosts costs(scenario, calibration, workers - scenario.backup_workers);
  for (const Collective& collective : collectives) {
    basis = std::max(basis, costs.basis(collective.kind, collective.bytes));
  }
  return basis;
}

}  // namespace lockstep
