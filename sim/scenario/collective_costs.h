#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/core/task_graph.h"
#include "sim/platform/network.h"
#include "sim/records/calibration.h"
#include "sim/records/result.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

/// Workers on each host; hosts are filled one after another.
int devices_per_host(const PlatformOptions& platform, int workers);

/// What TCP over IPv4 leaves for messages of a link's bandwidth, in packets of `mtu`: they hold 20
/// + 20 bytes of headers and 12 of timestamps, and Ethernet adds 14 to each.
Bandwidth tcp_payload(Bandwidth link, std::optional<Bytes> mtu);

/// What the collectives of a scenario cost at one number of workers: read off measured tables, or
/// to be run step by step over the links of network().
class CollectiveCosts {
 public:
  /// Throws InputError where a measured network was asked for and none was measured.
  CollectiveCosts(const Scenario& scenario, const Calibration& calibration, int workers);

  /// Throws InputError where nothing was measured to tell it from.
  Collective collective(CollectiveKind kind, Bytes bytes) const;
  /// On the host: in a row of such calls, and besides where it is in none.
  struct Call {
    Time host, between;
  };
  Call call(CollectiveKind kind, Bytes bytes) const;
  Basis basis(CollectiveKind kind, Bytes bytes) const;

  /// Collectives run over a network's links, or take the time that they would.
  bool stepwise() const { return stepwise_; }
  /// Null unless collectives run step by step.
  std::unique_ptr<Network> network() const;
  /// How much of what a rank sends to others of its host while they compute, which slows transfers
  /// by `slowdown` (>= 1), the network lets through: above zero, at most one.
  double network_share(double slowdown) const;

 private:
  struct Measured {
    Time device;
    Call call;
    Basis basis = Basis::measured;
  };
  void take_hierarchical();
  bool has_table(CollectiveKind kind) const;
  Measured measured(CollectiveKind kind, Bytes bytes) const;
  Measured through_root(Bytes bytes) const;
  StepCost message(CollectiveKind kind, Bytes bytes) const;
  StepCost on_shared_cores(StepCost step) const;
  Algorithm algorithm(CollectiveKind kind) const;
  Bandwidth payload(Bandwidth link) const;
  void take_formula(Collective& collective) const;

  int workers_;
  int devices_;
  bool stepwise_ = false;  ///< over a network
  bool formula_ = false;   ///< instead of its steps: there are too many
  bool gloo_ = false;
  double workers_per_core_ = 1;  ///< where one machine plays all hosts; at least one
  NetworkOptions network_;
  std::optional<Algorithm> all_reduce_;
  std::vector<CollectiveTable> tables_;  ///< of one host, or across hosts
};

}  // namespace lockstep
