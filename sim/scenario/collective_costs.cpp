#include "sim/scenario/collective_costs.h"

#include <algorithm>

#include "sim/collectives/algorithms.h"
#include "sim/collectives/costs.h"
#include "sim/collectives/steps.h"
#include "sim/collectives/table.h"
#include "sim/core/error.h"
#include "sim/platform/sharing.h"
#include "sim/workload/strategy.h"

namespace lockstep {
namespace {

/// A ring has 2(n-1)n messages: beyond this it would take longer than its answer is worth.
constexpr int kMostStepwise = 64;
/// With a collective for every parameter it comes earlier.
constexpr int kMostStepwiseEach = 16;

bool across_hosts(const CollectiveTable& table) {
  return table.topology.ends_with("hosts");
}

/// Tables as a link that each device has to the others makes them: an all-reduce along a ring, a
/// broadcast down a chain in many pieces; what rank 0 gathers, scatters or adds passes its port.
/// `one_process`: a thread copies from device 0 to one device after another, so that a broadcast
/// passes its port as well.
std::vector<CollectiveTable> tables_of_link(const DeviceLink& link, int workers, bool one_process) {
  constexpr Bytes kLarge{1 << 30};  // a straight line goes on beyond its two points
  const std::int64_t others = workers - 1;
  const Time flow = transfer_time(kLarge, link.bandwidth);
  const auto table = [&](const char* collective, std::int64_t messages, Time large) {
    const Time latency = link.latency * messages;
    CollectiveTable result;
    result.collective = collective;
    result.backend = "link";
    result.workers = workers;
    result.topology = kOneHost;
    result.points = {{Bytes{}, latency, latency, latency, {}},
                     {kLarge, latency + large, latency + large, latency + large, {}}};
    return result;
  };
  const Time ring = Time::picoseconds(multiply_divide(flow.ps(), 2 * others, workers));
  const Time port = flow * others;
  return {table("all_reduce", 2 * others, ring),
          table("broadcast", others, one_process ? port : flow), table("gather", others, port),
          table("scatter", others, port), table("reduce", others, port)};
}

bool is_stepwise(const PlatformOptions& platform, int workers) {
  if (workers < 2 || !platform.network || platform.network->measured) return false;
  if (platform.collective) return !platform.collective->table;
  return devices_per_host(platform, workers) < workers;
}

}  // namespace

int devices_per_host(const PlatformOptions& platform, int workers) {
  if (platform.devices_per_host > 0) return std::min(platform.devices_per_host, workers);
  return platform.network ? 1 : workers;
}

Bandwidth tcp_payload(Bandwidth link, std::optional<Bytes> mtu) {
  constexpr std::int64_t kEthernetMtu = 1500, kTcpIp = 52, kEthernet = 14;
  const std::int64_t packet = mtu ? mtu->count : kEthernetMtu;
  return {multiply_divide(link.bytes_per_second, packet - kTcpIp, packet + kEthernet)};
}

CollectiveCosts::CollectiveCosts(const Scenario& scenario, const Calibration& calibration,
                                 int workers)
    : workers_(workers), devices_(devices_per_host(scenario.platform, workers)) {
  const PlatformOptions& platform = scenario.platform;
  stepwise_ = is_stepwise(platform, workers);
  const Strategy& strategy = strategy_named(scenario.strategy.kind);
  const bool fused = strategy.has_buckets || strategy.has_cycles;
  formula_ = workers > (fused ? kMostStepwise : kMostStepwiseEach) || scenario.backup_workers > 0 ||
             !scenario.devices.empty();
  if (platform.network) network_ = *platform.network;
  const int cores = calibration.origin.machine.cores;
  if (platform.emulated && cores > 0) {
    workers_per_core_ = std::max(1.0, static_cast<double>(workers) / cores);
  }
  if (platform.collective) all_reduce_ = platform.collective->all_reduce;
  if (scenario.strategy.hierarchical) take_hierarchical();
  const bool across = network_.measured && devices_ < workers;
  for (const CollectiveTable& table : calibration.collectives) {
    if (across_hosts(table) != across || table.points.empty()) continue;
    gloo_ = gloo_ || table.backend == "gloo";
    tables_.push_back(table);
  }
  if (platform.device_link && !across && workers > 1) {
    const bool one_process = strategy_named(scenario.strategy.kind).one_process;
    tables_ = tables_of_link(*platform.device_link, workers, one_process);
  }
  if (across && workers > 1 && tables_.empty()) {
    throw InputError({}, "platform.network",
                     "calibration '" + calibration.id + "' holds no collectives across hosts",
                     "measure them under torchrun, or state bandwidth and latency");
  }
}

/// Within one host there is but one level.
void CollectiveCosts::take_hierarchical() {
  const auto refuse = [](const char* what, const char* hint) {
    throw InputError({}, "strategy.hierarchical", what, hint);
  };
  if (all_reduce_.value_or(Algorithm::hierarchical) != Algorithm::hierarchical) {
    refuse("platform.collective names another all-reduce", "give one of them");
  }
  if (devices_ < workers_ && !stepwise_) {
    refuse("collectives between the hosts come from tables, which have one way to reduce",
           "give platform.network a bandwidth and a latency, and platform.collective no table");
  }
  all_reduce_ = Algorithm::hierarchical;
}

bool CollectiveCosts::has_table(CollectiveKind kind) const {
  return std::ranges::any_of(
      tables_, [kind](const auto& table) { return table.collective == to_string(kind); });
}

/// Unmeasured: everybody's bytes through the root's one port, messages being as fast as those of a
/// ring that has chunks of this size.
CollectiveCosts::Measured CollectiveCosts::through_root(Bytes bytes) const {
  const auto all_reduce = CollectiveKind::all_reduce;
  const Bytes whole{bytes.count * workers_};
  const StepCost message = effective_step(tables_, all_reduce, workers_, whole);
  const TableCost as_ring = estimate(tables_, all_reduce, workers_, whole);
  Measured cost{.device = message.latency,
                .call = {.host = as_ring.host, .between = as_ring.between},
                .basis = Basis::extrapolated};
  if (message.rate > Bandwidth{}) {
    cost.device += transfer_time(bytes, message.rate) * (workers_ - 1);
  }
  return cost;
}

CollectiveCosts::Measured CollectiveCosts::measured(CollectiveKind kind, Bytes bytes) const {
  // Without an all-reduce nothing stands in for it: looking it up below says so.
  const bool other = kind != CollectiveKind::all_reduce && !has_table(kind);
  // NCCL reduces along the chain on which it broadcasts, the other way round.
  const bool reduces = kind == CollectiveKind::reduce && !gloo_;
  if (other && reduces && has_table(CollectiveKind::broadcast)) {
    Measured cost = measured(CollectiveKind::broadcast, bytes);
    cost.basis = Basis::extrapolated;
    return cost;
  }
  const bool halves = kind == CollectiveKind::broadcast || goes_in_parts(kind);
  if (other && !halves && !reduces) return through_root(bytes);
  if (other) {
    // A ring all-reduce is a reduce-scatter and an all-gather; each moves what a broadcast moves.
    Measured cost = measured(CollectiveKind::all_reduce, bytes);
    cost.device = Time::picoseconds(multiply_divide(cost.device.ps(), 1, 2));
    cost.basis = Basis::extrapolated;
    return cost;
  }
  const TableCost cost = estimate(tables_, kind, workers_, bytes);
  // Below the smallest measured size latency is all there is, and that was measured.
  const bool too_large =
      cost.beyond_sizes && std::ranges::all_of(tables_, [&](const auto& table) {
        return table.collective != to_string(kind) || bytes > table.points.front().bytes;
      });
  return {.device = cost.device,
          .call = {.host = cost.host, .between = cost.between},
          .basis = cost.other_workers || too_large ? Basis::extrapolated : Basis::measured};
}

/// What a message costs beside the network: as the table measured on one host has it.
StepCost CollectiveCosts::message(CollectiveKind kind, Bytes bytes) const {
  if (has_table(kind)) return effective_step(tables_, kind, workers_, bytes);
  if (!has_table(CollectiveKind::all_reduce)) return {};
  // A message of all these bytes, as a ring sends its chunks; or such a chunk itself.
  const Bytes whole = goes_in_parts(kind) ? bytes : Bytes{bytes.count * workers_};
  return effective_step(tables_, CollectiveKind::all_reduce, workers_, whole);
}

/// A message between hosts that are parts of one machine is work of its cores, at both ends and on
/// its way. Where all ranks send at once, they take turns.
StepCost CollectiveCosts::on_shared_cores(StepCost step) const {
  if (workers_per_core_ == 1) return step;
  const Factor turns = Factor::of(workers_per_core_);
  step.latency = scale(step.latency + network_.latency * 2, turns) - network_.latency * 2;
  step.rate = {static_cast<std::int64_t>(static_cast<double>(step.rate.bytes_per_second) /
                                         workers_per_core_)};
  return step;
}

Algorithm CollectiveCosts::algorithm(CollectiveKind kind) const {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return all_reduce_.value_or(gloo_ ? Algorithm::gloo_ring : Algorithm::ring);
    case CollectiveKind::broadcast:
      return gloo_ || all_reduce_ == Algorithm::tree ? Algorithm::tree : Algorithm::ring;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
      return Algorithm::ring;
    case CollectiveKind::all_to_all:
      return Algorithm::pairwise;
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
    case CollectiveKind::reduce:
      break;
  }
  return Algorithm::linear;
}

/// What is left for messages of a link's bandwidth.
Bandwidth CollectiveCosts::payload(Bandwidth link) const {
  return gloo_ || network_.mtu ? tcp_payload(link, network_.mtu) : link;
}

/// The largest chunk decides each step, and the way between two hosts the slowest hop.
void CollectiveCosts::take_formula(Collective& collective) const {
  Bandwidth slowest = payload(network_.bandwidth);
  for (const SlowLink& slow : network_.slow_links) {
    if (slow.host * devices_ < workers_) slowest = std::min(slowest, payload(slow.link));
  }
  collective.expanded = false;
  const auto ranks = static_cast<std::uint32_t>(workers_);
  StepCost& step = collective.step;
  StepCost inside = step;
  if (inside.rate == Bandwidth{}) inside.rate = kFastestLink;
  // The ranks of a full host send at once.
  const bool shared = collective.algorithm == Algorithm::hierarchical && workers_ % devices_ == 0;
  if (shared)
    slowest.bytes_per_second = std::max<std::int64_t>(slowest.bytes_per_second / devices_, 1);
  step.latency += network_.latency * 2;  // to the switch, and from it
  step.rate = step.rate > Bandwidth{} ? std::min(step.rate, slowest) : slowest;
  collective.duration = collective.algorithm == Algorithm::hierarchical
                            ? hierarchical_time(collective, ranks, inside, step)
                            : formula_time(collective, ranks);
}

Collective CollectiveCosts::collective(CollectiveKind kind, Bytes bytes) const {
  Collective collective{.kind = kind, .bytes = bytes};
  if (!stepwise_) {
    collective.duration = measured(kind, bytes).device;
    return collective;
  }
  collective.algorithm = algorithm(kind);
  collective.per_host = static_cast<std::uint32_t>(devices_);
  collective.step = message(kind, bytes);
  // Through a root one message after another passes.
  if (collective.algorithm != Algorithm::linear) collective.step = on_shared_cores(collective.step);
  collective.expanded = true;
  if (formula_) take_formula(collective);
  return collective;
}

CollectiveCosts::Call CollectiveCosts::call(CollectiveKind kind, Bytes bytes) const {
  if (stepwise_ && !has_table(CollectiveKind::all_reduce) && !has_table(kind)) return {};
  return measured(kind, bytes).call;
}

Basis CollectiveCosts::basis(CollectiveKind kind, Bytes bytes) const {
  return stepwise_ ? Basis::extrapolated : measured(kind, bytes).basis;
}

std::unique_ptr<Network> CollectiveCosts::network() const {
  if (!stepwise_ || formula_) return nullptr;
  PlainNetwork plain;
  plain.workers = static_cast<std::uint32_t>(workers_);
  plain.devices_per_host = static_cast<std::uint32_t>(devices_);
  // Within a host the table's own rate and latency hold, so that its links are no limit.
  plain.device_bandwidth = kFastestLink;
  plain.host_bandwidth = payload(network_.bandwidth);
  plain.host_latency = network_.latency;
  for (const SlowLink& slow : network_.slow_links) {
    plain.slow_hosts.emplace_back(static_cast<std::uint32_t>(slow.host), payload(slow.link));
  }
  return std::make_unique<Network>(plain_network(plain));
}

double CollectiveCosts::network_share(double slowdown) const {
  constexpr Bytes kLarge{4 << 20};  // where a message's latency hardly counts
  if (!stepwise_) return 1;
  const Bandwidth alone = message(CollectiveKind::all_reduce, kLarge).rate;
  if (alone <= Bandwidth{}) return 1;
  const double beside_compute = static_cast<double>(alone.bytes_per_second) / slowdown;
  return std::min(
      1.0, static_cast<double>(payload(network_.bandwidth).bytes_per_second) / beside_compute);
}

}  // namespace lockstep
