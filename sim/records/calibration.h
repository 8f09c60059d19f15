#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "sim/records/collective_table.h"
#include "sim/records/origin.h"
#include "sim/records/profile.h"

namespace lockstep {

/// Factors (>= 1) by which work slows; see TaskGraph.
struct InterferenceFit {
  double waiting = 1, transferring = 1;  ///< compute beside a collective of its worker
  double collective_beside_compute = 1;
  Time wait_beside_compute = {};  ///< that a collective of a table takes longer, whatever its size
  struct ByLayerKind {
    std::string layer_kind;
    double waiting = 1, transferring = 1;
    double collective_beside = 1;  ///< the collective, by each byte
    Time wait_beside = {};
    bool operator==(const ByLayerKind&) const = default;
  };
  std::vector<ByLayerKind> by_layer_kind;
  bool operator==(const InterferenceFit&) const = default;
};

struct CoreSlowdown {
  int active = 1, threads = 1;
  double slowdown = 1;  ///< of each worker, against one active worker with as many threads
  bool operator==(const CoreSlowdown&) const = default;
};

/// Relative standard deviations of log-normal factors with median one.
struct Noise {
  double process = 0;  ///< one draw per worker and run
  double step = 0;     ///< one draw per worker and step
  double task = 0;
  bool operator==(const Noise&) const = default;
};

struct Fit {
  std::string what;
  double residual = 0;  ///< relative
  int points = 0;
  bool operator==(const Fit&) const = default;
};

/// Everything the simulator needs to know about one machine.
struct Calibration {
  std::string id;
  Origin origin;
  Time reference;             ///< the speed all times are normalised to
  double drift_exponent = 1;  ///< how far steps follow the reference kernel, 0 to 1
  std::vector<Profile> profiles;
  std::vector<CollectiveTable> collectives;
  std::vector<CopyTable> copies;
  InterferenceFit interference;
  std::vector<CoreSlowdown> cores;
  Noise noise;
  int launch_queue = 0;
  std::vector<Fit> fits;
  bool operator==(const Calibration&) const = default;
};

/// Null where there are none of this name.
const CopyTable* copies_of(const Calibration& calibration, std::string_view what);
/// The first of these that holds points; null: none does.
const CopyTable* first_copies_of(const Calibration& calibration,
                                 std::initializer_list<std::string_view> names);

Calibration read_calibration(const std::string& file);
void write_calibration(const Calibration& calibration, const std::string& file);

}  // namespace lockstep
