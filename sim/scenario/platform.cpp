// The section `platform` of a scenario.
#include <fmt/core.h>

#include <algorithm>

#include "sim/collectives/steps.h"
#include "sim/core/error.h"
#include "sim/platform/sharing.h"
#include "sim/scenario/fields.h"
#include "sim/scenario/parts.h"

namespace lockstep {
namespace {

Bandwidth read_link(const ConfigNode& node, const std::string& name) {
  const Bandwidth bandwidth = to_bandwidth(node, name);
  if (bandwidth > kFastestLink) throw InputError(node.at, name, "must be at most 8 TB/s");
  return bandwidth;
}

SlowLink read_slow_link(const ConfigNode& node, const NetworkOptions& network, int hosts) {
  Fields fields(node, "platform.network.slow_links");
  SlowLink slow;
  const ConfigNode& host = fields.require("host", "1");
  slow.host =
      static_cast<int>(to_integer(host, "platform.network.slow_links.host", 0, kMostWorkers - 1));
  slow.link =
      read_link(fields.require("bandwidth", "100Mbit/s"), "platform.network.slow_links.bandwidth");
  fields.finish();
  if (slow.host >= hosts) {
    throw InputError(host.at, "platform.network.slow_links.host",
                     fmt::format("host {} never exists", slow.host),
                     fmt::format("with {} hosts the last is {}", hosts, hosts - 1));
  }
  if (std::ranges::find(network.slow_links, slow.host, &SlowLink::host) !=
      network.slow_links.end()) {
    throw InputError(host.at, "platform.network.slow_links.host",
                     fmt::format("host {} is given twice", slow.host));
  }
  return slow;
}

Bytes read_mtu(const ConfigNode& node) {
  constexpr Bytes kLeast{576}, kMost{65536};  // the least that IPv4 guarantees; loopback's
  const Bytes mtu = to_bytes(node, "platform.network.mtu");
  if (mtu < kLeast || mtu > kMost) {
    throw InputError(node.at, "platform.network.mtu",
                     fmt::format("must be from {} B to {} B", kLeast.count, kMost.count),
                     "Ethernet has 1500B, with jumbo frames 9000B");
  }
  return mtu;
}

Time read_latency(const ConfigNode& node, const std::string& name) {
  constexpr Time kLongest = Time::milliseconds(1000);
  const Time latency = to_time(node, name);
  if (latency > kLongest) {
    throw InputError(node.at, name, "must be at most one second",
                     "it is that of one link, such as 5us");
  }
  return latency;
}

DeviceLink read_device_link(const ConfigNode& node) {
  Fields fields(node, "platform.hosts.link");
  DeviceLink link;
  link.bandwidth =
      read_link(fields.require("bandwidth", "10GB/s"), "platform.hosts.link.bandwidth");
  constexpr Bandwidth kSlowest{1'000'000};
  if (link.bandwidth < kSlowest) {
    throw InputError(node.at, "platform.hosts.link.bandwidth", "must be at least 1 MB/s",
                     "check its unit: 10GB/s");
  }
  if (const ConfigNode* latency = fields.find("latency")) {
    link.latency = read_latency(*latency, "platform.hosts.link.latency");
  }
  fields.finish();
  return link;
}

NetworkOptions read_network(const ConfigNode& node, int hosts) {
  NetworkOptions network;
  if (node.kind == ConfigNode::Kind::scalar) {
    if (node.scalar != "measured") {
      throw InputError(node.at, "platform.network",
                       fmt::format("'{}' is no network", node.scalar.substr(0, 40)),
                       "write measured, or {bandwidth: 25GB/s, latency: 5us}");
    }
    network.measured = true;
    return network;
  }
  Fields fields(node, "platform.network");
  network.bandwidth =
      read_link(fields.require("bandwidth", "25GB/s"), "platform.network.bandwidth");
  if (const ConfigNode* latency = fields.find("latency")) {
    network.latency = read_latency(*latency, "platform.network.latency");
  }
  if (const ConfigNode* mtu = fields.find("mtu")) network.mtu = read_mtu(*mtu);
  if (const ConfigNode* list = fields.find("slow_links")) {
    for (const ConfigNode& item : to_list(*list, "platform.network.slow_links", kMostPoints)) {
      network.slow_links.push_back(read_slow_link(item, network, hosts));
    }
  }
  fields.finish();
  return network;
}

CollectiveModel read_collective(const ConfigNode& node, const PlatformOptions& platform) {
  constexpr std::string_view kModels[] = {
      "table", "ring",        "gloo_ring", "recursive_doubling", "halving_doubling",
      "tree",  "hierarchical"};
  constexpr Algorithm kAlgorithms[] = {Algorithm::ring,
                                       Algorithm::gloo_ring,
                                       Algorithm::recursive_doubling,
                                       Algorithm::halving_doubling,
                                       Algorithm::tree,
                                       Algorithm::hierarchical};
  if (node.kind == ConfigNode::Kind::map) {
    Fields fields(node, "platform.collective");
    const ConfigNode& all_reduce = fields.require("all_reduce", "hierarchical");
    fields.finish();
    return read_collective(all_reduce, platform);
  }
  const std::size_t choice = to_choice(node, "platform.collective", kModels);
  if (choice == 0) return {.table = true, .all_reduce = {}};
  if (!platform.network || platform.network->measured) {
    throw InputError(node.at, "platform.collective",
                     fmt::format("{} runs over a network, none is given", kModels[choice]),
                     "add network: {bandwidth: 25GB/s, latency: 5us}");
  }
  return {.table = false, .all_reduce = kAlgorithms[choice - 1]};
}

int most_hosts(const PlatformOptions& platform, const std::vector<int>& workers) {
  const int devices = std::max(1, platform.devices_per_host);
  return (std::ranges::max(workers) + devices - 1) / devices;
}

}  // namespace

PlatformOptions read_platform(const ConfigNode& node, const std::vector<int>& workers) {
  PlatformOptions platform;
  Fields fields(node, "platform");
  if (const ConfigNode* hosts = fields.find("hosts")) {
    Fields inner(*hosts, "platform.hosts");
    platform.devices_per_host = static_cast<int>(
        to_integer(inner.require("devices", "4"), "platform.hosts.devices", 1, kMostWorkers));
    if (const ConfigNode* link = inner.find("link")) platform.device_link = read_device_link(*link);
    if (const ConfigNode* emulated = inner.find("emulated")) {
      platform.emulated = to_switch(*emulated, "platform.hosts.emulated");
    }
    inner.finish();
  }
  if (const ConfigNode* network = fields.find("network")) {
    platform.network = read_network(*network, most_hosts(platform, workers));
  }
  if (const ConfigNode* model = fields.find("collective")) {
    platform.collective = read_collective(*model, platform);
  }
  fields.finish();
  return platform;
}

}  // namespace lockstep
