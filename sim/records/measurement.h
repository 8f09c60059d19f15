#pragma once

#include <string>
#include <vector>

#include "sim/records/collective_table.h"
#include "sim/records/origin.h"
#include "sim/records/profile.h"

namespace lockstep {

/// One profile as one process saw it in one block.
struct ProfileSample {
  int process = 0;  ///< repeat: processes are restarted between repeats
  int rank = 0;
  SpeedIndex speed_index;
  Profile profile;
  std::vector<Time> steps;  ///< unprofiled `single` steps of the block, raw
  /// How much longer the host takes for a step whose gradients go into DDP's buckets (of the usual
  /// caps), nothing being communicated. Zero: not measured.
  Time ddp_host = {};
  bool operator==(const ProfileSample&) const = default;
};

struct CollectiveSample {
  int process = 0;
  SpeedIndex speed_index;
  CollectiveTable table;
  bool operator==(const CollectiveSample&) const = default;
};

/// The same piece of work alone and beside something else.
struct InterferenceSample {
  std::string layer_kind;  ///< of the compute; "" = any
  std::string beside;  ///< compute beside a "waiting" or "transferring" collective; or "compute":
                       ///< the collective beside compute
  int workers = 0;
  Time alone, together;
  Bytes bytes = {};  ///< of the collective, where it is what is timed
  bool operator==(const InterferenceSample&) const = default;
};

/// One worker's fixed work while `active` workers of `threads` threads each compute on the host.
struct CoreSample {
  int active = 1, threads = 1;
  SpeedIndex speed_index;
  Time time;
  bool operator==(const CoreSample&) const = default;
};

/// What `lockstep-measure` writes about a machine; `lockstep calibrate` turns one or more of them,
/// of the same visit, into a calibration.
struct Measurement {
  std::string id;  ///< of the visit; the calibration takes it over, and runs name it
  Origin origin;
  Time reference;        ///< median time of the reference kernel over the visit
  int launch_queue = 0;  ///< kernels the host may run ahead (0: not a GPU)
  std::vector<ProfileSample> profiles;
  std::vector<CollectiveSample> collectives;
  std::vector<CopyTable> copies;
  std::vector<InterferenceSample> interference;
  std::vector<CoreSample> cores;
  bool operator==(const Measurement&) const = default;
};

Measurement read_measurement(const std::string& file);
void write_measurement(const Measurement& measurement, const std::string& file);

}  // namespace lockstep
