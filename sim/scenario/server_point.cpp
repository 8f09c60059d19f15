#include "sim/scenario/server_point.h"

#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "sim/collectives/table.h"
#include "sim/core/error.h"
#include "sim/platform/sharing.h"
#include "sim/scenario/collective_costs.h"
#include "sim/workload/profile_choice.h"
#include "sim/workload/sharding.h"

namespace lockstep {
namespace {

/// Every way between a worker and a server is looked at whenever one of them changes.
constexpr std::int64_t kMostWays = 1024;

/// Of the first of these tables that was measured; else nothing.
Time copy_time(const Calibration& calibration, std::initializer_list<std::string_view> tables,
               Bytes bytes) {
  const CopyTable* table = first_copies_of(calibration, tables);
  return table == nullptr ? Time{} : copy_cost(*table, bytes).device;
}

/// Of one message between two processes of a host, over Gloo.
const CollectiveTable* message_table(const Calibration& calibration) {
  for (const std::string_view kind : {"send_recv", "gather", "scatter", "broadcast"}) {
    for (const CollectiveTable& table : calibration.collectives) {
      if (table.collective == kind && table.backend == "gloo" && table.topology == kOneHost &&
          table.workers == 2 && !table.points.empty()) {
        return &table;
      }
    }
  }
  return nullptr;
}

MessageCost message_cost(const CollectiveTable& table, Bytes bytes) {
  const Time latency = lookup(table, Bytes{}).device;
  const Time flowing = std::max(Time::picoseconds(1), lookup(table, bytes).device - latency);
  const double rate = static_cast<double>(bytes.count) / flowing.seconds();
  return {.latency = latency,
          .rate = {std::clamp<std::int64_t>(static_cast<std::int64_t>(rate), 1,
                                            kFastestLink.bytes_per_second)}};
}

/// What the servers add to the workers' network: a host for each.
void add_server_hosts(Platform& platform, const NetworkOptions& network, int worker_hosts,
                      int servers) {
  for (int server = 0; server < servers; ++server) {
    const auto first = static_cast<std::uint32_t>(platform.nodes.size());
    const auto slow = std::ranges::find(network.slow_links, worker_hosts + server, &SlowLink::host);
    const Bandwidth link = slow == network.slow_links.end() ? network.bandwidth : slow->link;
    platform.nodes.push_back({NodeKind::host, fmt::format("server host {}", server)});
    platform.nodes.push_back({NodeKind::device, fmt::format("server {}", server)});
    platform.links.push_back(
        {first, 0, tcp_payload(link, network.mtu), network.latency});  // node 0 is the switch
    platform.links.push_back({first + 1, first, kFastestLink, Time{}});
    platform.device_of_worker.push_back(first + 1);
  }
}

Platform over_network(const NetworkOptions& network, int workers, int devices, int servers) {
  PlainNetwork plain;
  plain.workers = static_cast<std::uint32_t>(workers);
  plain.devices_per_host = static_cast<std::uint32_t>(devices);
  plain.device_bandwidth = kFastestLink;
  plain.host_bandwidth = tcp_payload(network.bandwidth, network.mtu);
  plain.host_latency = network.latency;
  for (const SlowLink& slow : network.slow_links) {
    plain.slow_hosts.emplace_back(static_cast<std::uint32_t>(slow.host),
                                  tcp_payload(slow.link, network.mtu));
  }
  Platform platform = plain_network(plain);
  add_server_hosts(platform, network, (workers + devices - 1) / devices, servers);
  return platform;
}

/// A process handles its messages in one thread, at the rate of one message alone each way.
Platform on_one_host(const ServerSystem& system, int workers) {
  Bandwidth rate;
  for (const MessageCost& message : system.messages) rate = std::max(rate, message.rate);
  PlainNetwork plain;
  plain.workers = static_cast<std::uint32_t>(workers) + system.server_count();
  plain.devices_per_host = plain.workers;
  plain.device_bandwidth = rate;
  plain.host_bandwidth = kFastestLink;
  return plain_network(plain);
}

class ServerPointMaker {
 public:
  ServerPointMaker(const Scenario& scenario, const Calibration& calibration, const Point& point)
      : scenario_(scenario),
        calibration_(calibration),
        point_(point),
        network_(scenario.platform.network),
        workers_(point.workers),
        servers_(scenario.strategy.servers) {}

  ServerPoint make() {
    check_size();
    const Profile& profile = point_.workload.profiles.front();
    std::vector<Bytes> sizes;
    for (const Parameter* parameter : parameters_of(profile)) sizes.push_back(parameter->bytes);
    ServerPoint made;
    ServerSystem& system = made.system;
    system.shards = shard_bytes(sizes, shard_parameters(sizes, servers_));
    system.staleness = scenario_.strategy.staleness;
    system.messages = messages(system.shards, made.basis);
    for (const Bytes shard : system.shards) system.servers.push_back(server_cost(shard));
    set_copies(system, parameter_bytes(profile));
    set_delays(system);
    made.network =
        std::make_unique<Network>(network_ ? over_network(*network_, workers_, devices(), servers_)
                                           : on_one_host(system, workers_));
    system.network = made.network.get();
    if (on_cpu(calibration_)) system.cores = shared_cores();
    return made;
  }

 private:
  int devices() const { return devices_per_host(scenario_.platform, workers_); }

  void check_size() const {
    if (std::int64_t{workers_} * servers_ > kMostWays) {
      throw InputError({}, "strategy.servers",
                       fmt::format("{} workers with {} servers are too many ways between them",
                                   workers_, servers_),
                       fmt::format("at most {}", kMostWays));
    }
    if (network_ && network_->measured) {
      throw InputError({}, "platform.network",
                       "messages between hosts were not measured, only collectives",
                       "state it: {bandwidth: 1Gbit/s, latency: 20us}");
    }
    if (!network_ && devices() < workers_) {
      throw InputError({}, "platform", "several hosts, and no network between them",
                       "add network: {bandwidth: 1Gbit/s, latency: 20us}");
    }
  }

  std::vector<MessageCost> messages(const std::vector<Bytes>& shards, Basis& basis) const {
    const CollectiveTable* table = message_table(calibration_);
    if (table == nullptr && !network_) {
      throw InputError(
          {}, "platform.network",
          fmt::format("calibration '{}' holds no messages over Gloo on one host", calibration_.id),
          "state a network: {bandwidth: 25Gbit/s, latency: 20us}");
    }
    const bool measured = table != nullptr && table->collective == "send_recv" && !network_;
    basis = measured ? Basis::measured : Basis::extrapolated;
    std::vector<MessageCost> costs;
    for (const Bytes shard : shards) {
      costs.push_back(table != nullptr ? message_cost(*table, shard) : MessageCost{});
    }
    return costs;
  }

  /// Of a worker with `count` computing on its host, itself included.
  Profile profile_beside(int count) const {
    return choose_profile(calibration_, {.model = scenario_.model,
                                         .precision = scenario_.precision,
                                         .batch = batch_of(scenario_, workers_, 0),
                                         .graph = scenario_.graph,
                                         .beside = count})
        .profile;
  }

  /// How much longer workers compute beside each other than where `beside` of them do, which is
  /// what their profile says.
  std::vector<Factor> together(int beside) const {
    const auto computing = [this](int count) {
      const Profile profile = profile_beside(count);
      Time sum;
      for (const Layer& layer : profile.layers) {
        sum += layer.forward.device + layer.backward.device;
      }
      return sum.seconds();
    };
    const double all = computing(beside);
    std::vector<Factor> factors;
    for (int count = 1; count <= beside; ++count) {
      const bool same = count == beside || all <= 0;
      factors.push_back(same ? Factor{} : Factor::of(computing(count) / all));
    }
    return factors;
  }

  /// Applying an update is the optimizer's work, by its share of the bytes, beside nobody.
  ServerCost server_cost(Bytes shard) const {
    const Bandwidth rate = scenario_.strategy.server_rate;
    if (rate > Bandwidth{}) {
      return {.add = transfer_time(shard, rate), .apply = transfer_time(shard, rate), .copy = {}};
    }
    if (!on_cpu(calibration_)) {
      if (copies_of(calibration_, "server_apply") != nullptr) {
        return {.add = copy_time(calibration_, {"server_add"}, shard),
                .apply = copy_time(calibration_, {"server_apply"}, shard),
                .copy = copy_time(calibration_, {"server_copy"}, shard)};
      }
      throw InputError({}, "strategy",
                       fmt::format("calibration '{}' of GPUs does not say how fast the cores of a "
                                   "server add and apply gradients",
                                   calibration_.id),
                       "state it, such as server_rate: 4GB/s; or measure parameter_server");
    }
    const Profile profile = profile_beside(1);
    const std::int64_t all = std::max<std::int64_t>(1, parameter_bytes(profile).count);
    return {.add = copy_time(calibration_, {"add", "bucket_in"}, shard),
            .apply =
                Time::picoseconds(multiply_divide(profile.optimizer.device.ps(), shard.count, all)),
            .copy = copy_time(calibration_, {"bucket_in"}, shard)};
  }

  /// Between gradients or parameters and messages. On a GPU all gradients go side by side first, as
  /// into a bucket, and then each message through pinned memory; back the same way.
  void set_copies(ServerSystem& system, Bytes bytes) const {
    Time pack = copy_time(calibration_, {"bucket_in"}, bytes), unpack = pack;
    for (const Bytes shard : system.shards) {
      if (on_cpu(calibration_)) break;
      pack += copy_time(calibration_, {"device_to_host"}, shard);
      unpack += copy_time(calibration_, {"host_to_device"}, shard);
    }
    system.pack.assign(static_cast<std::size_t>(workers_), pack);
    system.unpack.assign(static_cast<std::size_t>(workers_), unpack);
  }

  /// Slow-downs, drawn ones too, are in what the engine says of computing.
  void set_delays(ServerSystem& system) const {
    system.seed = scenario_.seed;
    for (int worker = 0; worker < workers_; ++worker) {
      std::vector<DrawnDelay>& mine = system.delays.emplace_back();
      for (std::uint32_t place = 0; place < scenario_.stragglers.size(); ++place) {
        const Straggler& straggler = scenario_.stragglers[place];
        if (!applies_to(straggler, worker) || straggler.delay == Time{}) continue;
        mine.push_back(
            {.time = straggler.delay, .variability = straggler.delay_varies, .stream = place});
      }
    }
  }

  SharedCores shared_cores() const {
    const int cores = calibration_.origin.machine.cores;
    const bool emulated = scenario_.platform.emulated;
    SharedCores shared;
    if (cores <= 0 || scenario_.compute == Compute::replay) return shared;
    shared.cores = cores;
    shared.threads = compute_threads(calibration_);
    const int host = emulated ? workers_ : devices();  // workers that share its cores
    if (network_ && !emulated && host == 1) return shared;
    shared.together = together(host);
    for (int worker = 0; worker < workers_; ++worker) {
      shared.host_of.push_back(static_cast<std::uint32_t>(worker / host));
    }
    const std::uint32_t hosts = shared.host_of.back() + 1;
    for (int server = 0; server < servers_; ++server) {
      // On a host of its own a server shares with nobody.
      const auto own = hosts + static_cast<std::uint32_t>(server);
      shared.host_of.push_back(network_ && !emulated ? own : 0);
    }
    shared.slow_transfers = !network_;
    if (network_) shared.transfer = 0;  // the link holds it up, not a core
    return shared;
  }

  const Scenario& scenario_;
  const Calibration& calibration_;
  const Point& point_;
  const std::optional<NetworkOptions>& network_;
  int workers_, servers_;
};

}  // namespace

ServerPoint make_server_point(const Scenario& scenario, const Calibration& calibration,
                              const Point& point) {
  return ServerPointMaker(scenario, calibration, point).make();
}

}  // namespace lockstep
