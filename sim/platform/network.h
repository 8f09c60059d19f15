#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/time.h"
#include "sim/core/units.h"

namespace lockstep {

enum class NodeKind : std::uint8_t { host, device, network_switch, nic };

struct Node {
  NodeKind kind = NodeKind::host;
  std::string name;
};

/// A full-duplex cable: `bandwidth` each way, whatever goes the other way.
struct Link {
  std::uint32_t from = 0, to = 0;  ///< indices of nodes
  Bandwidth bandwidth;
  Time latency;
};

/// What scenarios run on, as it is drawn: nodes, and cables between them.
struct Platform {
  std::vector<Node> nodes;
  std::vector<Link> links;
  std::vector<std::uint32_t> device_of_worker;  ///< index of the node
};

/// One switch, a cable to each host, devices behind their host: the plain network.
struct PlainNetwork {
  std::uint32_t workers = 1;
  std::uint32_t devices_per_host = 1;
  Bandwidth device_bandwidth = {};  ///< between a device and its host
  Time device_latency = {};
  Bandwidth host_bandwidth = {};  ///< between a host and the switch
  Time host_latency = {};
  std::vector<std::pair<std::uint32_t, Bandwidth>> slow_hosts =
      {};  ///< whose cable has another rate
};
Platform plain_network(const PlainNetwork& description);

/// Directed links on the way from one worker's device to another's. Link 2i is Platform::links[i]
/// in its own direction, 2i + 1 is the other direction.
struct Route {
  std::vector<std::uint32_t> links;
  Time latency;  ///< sum over the links
};

/// A platform with routes. Immutable, may be used by many threads.
class Network {
 public:
  /// Throws InputError where a link joins nodes that are not there or has no bandwidth, where a
  /// worker sits on no device of its own, or where workers are not connected.
  explicit Network(const Platform& platform);
  ~Network();
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;

  std::uint32_t workers() const;
  /// Of directed links.
  const std::vector<Bandwidth>& links() const;
  /// The way of least latency; among equals, of fewest links; then the one that Dijkstra's
  /// algorithm finds first, nodes and links taken in the order of the platform.
  Route route(std::uint32_t from_worker, std::uint32_t to_worker) const;

 private:
  struct Topology;
  std::unique_ptr<const Topology> topology_;
};

}  // namespace lockstep
