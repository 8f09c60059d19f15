#include "sim/platform/network.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <limits>

#include "sim/core/error.h"
#include "sim/platform/sharing.h"

namespace lockstep {
namespace {

/// Of a way: compared by latency, then by number of links.
struct Distance {
  std::int64_t latency = 0;
  std::int64_t links = 0;
  auto operator<=>(const Distance&) const = default;
  friend Distance operator+(const Distance& a, const Distance& b) {
    return {a.latency + b.latency, a.links + b.links};
  }
};

struct Edge {
  std::uint32_t link = 0;  ///< directed
  Distance distance;
};

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS,
                                    boost::no_property, Edge>;

constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 2;

[[noreturn]] void reject(const std::string& what, std::string_view hint) {
  throw InputError({}, "platform", what, hint);
}

Graph build_graph(const Platform& platform) {
  Graph graph(platform.nodes.size());
  // So that no way over all links is longer than half of what a clock holds.
  const std::int64_t longest = kFar / static_cast<std::int64_t>(platform.links.size() + 1);
  for (std::uint32_t i = 0; i < platform.links.size(); ++i) {
    const Link& link = platform.links[i];
    if (link.from >= platform.nodes.size() || link.to >= platform.nodes.size()) {
      reject(fmt::format("link {} joins a node that is not there", i), "");
    }
    if (link.bandwidth.bytes_per_second <= 0 ||
        link.bandwidth.bytes_per_second > kLargestBandwidth || link.latency < Time() ||
        link.latency.ps() > longest) {
      reject(fmt::format("the link between {} and {} has no sensible bandwidth or latency",
                         platform.nodes[link.from].name, platform.nodes[link.to].name),
             "bandwidths lie above zero and up to 8 TB/s, latencies are neither negative nor days");
    }
    const Distance distance{link.latency.ps(), 1};
    boost::add_edge(link.from, link.to, Edge{2 * i, distance}, graph);
    boost::add_edge(link.to, link.from, Edge{2 * i + 1, distance}, graph);
  }
  return graph;
}

}  // namespace

struct Network::Topology {
  Graph graph;
  // Of directed links; `tails`: where they begin.
  std::vector<Bandwidth> bandwidths;
  std::vector<Time> latencies;
  std::vector<std::uint32_t> tails;
  std::vector<std::uint32_t> device_of_worker;

  /// By node: the directed link by which the best way from `source` arrives; kNone where none does.
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> arrivals(std::uint32_t source) const;
};

namespace {

/// Notes the edge by which each node was last improved.
struct ArrivalRecorder : boost::dijkstra_visitor<> {
  explicit ArrivalRecorder(std::vector<std::uint32_t>& arrivals) : arrivals_(&arrivals) {}
  void edge_relaxed(Graph::edge_descriptor edge, const Graph& graph) {
    (*arrivals_)[boost::target(edge, graph)] = graph[edge].link;
  }

 private:
  std::vector<std::uint32_t>* arrivals_;
};

}  // namespace

std::vector<std::uint32_t> Network::Topology::arrivals(std::uint32_t source) const {
  std::vector<std::uint32_t> arrivals(boost::num_vertices(graph), kNone);
  std::vector<Distance> distances(boost::num_vertices(graph));
  constexpr Distance kUnreached{kFar, kFar};
  boost::dijkstra_shortest_paths(graph, source,
                                 boost::weight_map(boost::get(&Edge::distance, graph))
                                     .distance_map(boost::make_iterator_property_map(
                                         distances.begin(), boost::get(boost::vertex_index, graph)))
                                     .distance_inf(kUnreached)
                                     .distance_zero(Distance{})
                                     .distance_compare(std::less<Distance>())
                                     .distance_combine(std::plus<Distance>())
                                     .visitor(ArrivalRecorder(arrivals)));
  return arrivals;
}

Network::Network(const Platform& platform) {
  Topology topology;
  topology.graph = build_graph(platform);
  for (const Link& link : platform.links) {
    topology.bandwidths.insert(topology.bandwidths.end(), 2, link.bandwidth);
    topology.latencies.insert(topology.latencies.end(), 2, link.latency);
    topology.tails.push_back(link.from);
    topology.tails.push_back(link.to);
  }
  topology.device_of_worker = platform.device_of_worker;
  std::vector<bool> taken(platform.nodes.size(), false);
  for (std::uint32_t w = 0; w < platform.device_of_worker.size(); ++w) {
    const std::uint32_t node = platform.device_of_worker[w];
    if (node >= platform.nodes.size() || platform.nodes[node].kind != NodeKind::device) {
      reject(fmt::format("worker {} sits on no device", w), "");
    }
    if (taken[node]) reject(fmt::format("two workers sit on {}", platform.nodes[node].name), "");
    taken[node] = true;
  }
  if (!platform.device_of_worker.empty()) {
    // Links go both ways, so what the first worker reaches reaches everybody.
    const std::uint32_t first = platform.device_of_worker.front();
    const std::vector<std::uint32_t> arrivals = topology.arrivals(first);
    for (const std::uint32_t node : platform.device_of_worker) {
      if (node != first && arrivals[node] == Topology::kNone) {
        reject(fmt::format("no way leads from {} to {}", platform.nodes[first].name,
                           platform.nodes[node].name),
               "add the link that joins them");
      }
    }
  }
  topology_ = std::make_unique<const Topology>(std::move(topology));
}

Network::~Network() = default;
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;

std::uint32_t Network::workers() const {
  return static_cast<std::uint32_t>(topology_->device_of_worker.size());
}

const std::vector<Bandwidth>& Network::links() const {
  return topology_->bandwidths;
}

Route Network::route(std::uint32_t from_worker, std::uint32_t to_worker) const {
  const std::uint32_t source = topology_->device_of_worker.at(from_worker);
  const std::vector<std::uint32_t> arrivals = topology_->arrivals(source);
  Route route;
  for (std::uint32_t node = topology_->device_of_worker.at(to_worker); node != source;) {
    const std::uint32_t link = arrivals[node];
    route.links.push_back(link);
    node = topology_->tails[link];
  }
  std::reverse(route.links.begin(), route.links.end());
  for (const std::uint32_t link : route.links) route.latency += topology_->latencies[link];
  return route;
}

Platform plain_network(const PlainNetwork& description) {
  if (description.workers == 0 || description.devices_per_host == 0) {
    reject("a network without workers or devices", "at least one worker, one device a host");
  }
  Platform platform;
  const auto add_node = [&](NodeKind kind, std::string name) {
    platform.nodes.push_back({kind, std::move(name)});
    return static_cast<std::uint32_t>(platform.nodes.size() - 1);
  };
  const std::uint32_t middle = add_node(NodeKind::network_switch, "switch");
  std::uint32_t host = 0;
  for (std::uint32_t w = 0; w < description.workers; ++w) {
    if (w % description.devices_per_host == 0) {
      const std::uint32_t index = w / description.devices_per_host;
      host = add_node(NodeKind::host, fmt::format("host {}", index));
      Bandwidth bandwidth = description.host_bandwidth;
      for (const auto& [slow, rate] : description.slow_hosts) {
        if (slow == index) bandwidth = rate;
      }
      platform.links.push_back({host, middle, bandwidth, description.host_latency});
    }
    const std::uint32_t device = add_node(NodeKind::device, fmt::format("device {}", w));
    platform.links.push_back(
        {device, host, description.device_bandwidth, description.device_latency});
    platform.device_of_worker.push_back(device);
  }
  return platform;
}

}  // namespace lockstep
