#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/core/time.h"
#include "sim/core/units.h"

namespace lockstep {

/// Topology of a table whose workers were on one host; else it is "2 hosts", "3 hosts", ...
inline constexpr const char* kOneHost = "one host";

struct CollectivePoint {
  Bytes bytes;         ///< the array of one rank; of all-gather and the like the whole array
  Time p10, p50, p90;  ///< from the last launch to the end
  Time host;           ///< of the call
  bool operator==(const CollectivePoint&) const = default;
};

/// Measured time of one collective on one backend over one number of workers, by bytes (ascending).
struct CollectiveTable {
  /// "all_reduce", "broadcast", "gather" (to rank 0), "scatter" (from it); measured and not yet
  /// used by any strategy: "reduce" (to rank 0), "all_gather", "reduce_scatter", "all_to_all",
  /// "send_recv" (each rank to the next)
  std::string collective;
  std::string backend;    ///< "nccl", "gloo"
  std::string algorithm;  ///< "ring", ...; empty: the backend chose
  int workers = 0;
  std::string topology;  ///< kOneHost, or how many hosts
  std::vector<CollectivePoint> points;
  std::map<std::string, std::string> environment;
  /// Sizes that were measured to see how right the table is between its points. Nothing is read off
  /// them.
  std::vector<CollectivePoint> held_out = {};
  /// What a call takes the host beyond a point's `host`, which is that of one call of a row, where
  /// it comes behind launches of another kind.
  Time call_between = {};
  bool operator==(const CollectiveTable&) const = default;
};

/// A copy (gradients into a bucket, host to device), by bytes.
struct CopyPoint {
  Bytes bytes;
  int tensors = 1;
  Time device, host;
  bool operator==(const CopyPoint&) const = default;
};
struct CopyTable {
  /// "bucket_in" (scattered gradients into one bucket), "add" (one array to another of that size),
  /// "host_to_device" and "device_to_host" (pinned memory), the same with "_pageable",
  /// "device_to_device" (another GPU of the host), "server_add", "server_apply" and "server_copy"
  /// (what a parameter server does with a gradient, on cores); "agreement": no copy, but how long
  /// the hosts of GPUs take to sum so many bytes over their own network (host time)
  std::string what;
  std::vector<CopyPoint> points;
  bool operator==(const CopyTable&) const = default;
};

}  // namespace lockstep
