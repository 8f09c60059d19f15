#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/core/time.h"

namespace lockstep {

/// Every record on disk carries this number; a reader refuses another by name.
inline constexpr int kFormat = 1;

struct GpuInfo {
  std::string name, uuid;
  int sm_clock_mhz = 0;
  double power_w = 0;
  std::string throttle;
  bool operator==(const GpuInfo&) const = default;
};

struct Machine {
  std::string host;  ///< a kind of machine ("4 x H100 80GB HBM3"), never a host's own name
  std::string cpu;
  int cores = 0;
  std::vector<GpuInfo> gpus;
  std::string
      links;  ///< how the devices are connected, e.g. "NVLink, 18 links a pair" or "loopback"
  bool operator==(const Machine&) const = default;
};

struct Software {
  std::string lockstep, torch, cuda, nccl, gloo, driver;
  bool operator==(const Software&) const = default;
};

/// Time of the fixed reference kernel just before and just after a block of measurements. Machines
/// drift; a time t measured in the block is normalised to t * reference_ns / mean(before, after),
/// reference_ns being the calibration's.
struct SpeedIndex {
  Time before, after;
  bool operator==(const SpeedIndex&) const = default;
};

/// Where a record comes from.
struct Origin {
  Machine machine;
  Software software;
  std::map<std::string, std::string> environment;  ///< of a short list of names only
  std::string command;
  std::string date;  ///< ISO 8601, UTC
  bool operator==(const Origin&) const = default;
};

}  // namespace lockstep
