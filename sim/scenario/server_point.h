#pragma once

#include <memory>

#include "sim/platform/network.h"
#include "sim/records/calibration.h"
#include "sim/records/result.h"
#include "sim/scenario/point.h"
#include "sim/scenario/scenario.h"
#include "sim/workload/server_system.h"

namespace lockstep {

/// A parameter server's scenario at one number of workers. Refers to its network.
struct ServerPoint {
  ServerSystem system;  ///< but for what workers compute
  std::unique_ptr<Network> network;
  Basis basis = Basis::measured;  ///< of messages
};

/// Servers have processes of their own: over a network each on a host of its own, else on the
/// workers' host, whose cores they share with them. Messages go over Gloo's TCP whatever the
/// workers compute on: their latency, and the rate that the processes at both ends can handle, are
/// those measured on one host ("send_recv", else what a gather of two workers takes). Throws
/// InputError where neither a network nor such a table is there, where the calibration says nothing
/// of a server's work, and where there are fewer parameters than servers.
ServerPoint make_server_point(const Scenario& scenario, const Calibration& calibration,
                              const Point& point);

}  // namespace lockstep
