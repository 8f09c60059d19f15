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
  std::string collective;  ///< "all_reduce", "broadcast", "gather" (to rank 0), "scatter" (from it)
  std::string backend;     ///< "nccl", "gloo"
  std::string algorithm;   ///< "ring", ...; empty: the backend chose
  int workers = 0;
  std::string topology;  ///< kOneHost, or how many hosts
  std::vector<CollectivePoint> points;
  std::map<std::string, std::string> environment;
  bool operator==(const CollectiveTable&) const = default;
};

/// A local copy (gradients into a bucket, host to device), by bytes.
struct CopyPoint {
  Bytes bytes;
  int tensors = 1;
  Time device, host;
  bool operator==(const CopyPoint&) const = default;
};
struct CopyTable {
  /// "bucket_in" (scattered gradients into one bucket), "host_to_device", "add" (one array to
  /// another of that size)
  std::string what;
  std::vector<CopyPoint> points;
  bool operator==(const CopyTable&) const = default;
};

}  // namespace lockstep
