#pragma once

#include <string>
#include <vector>

#include "sim/core/time.h"
#include "sim/records/result.h"

namespace lockstep {

/// One measured run beside its prediction.
struct ValidationPoint {
  std::string run;
  std::string model, strategy;
  int batch_per_worker = 0, workers = 1;
  bool graph = false;
  Sync sync = Sync::step;
  Compute compute = Compute::real;
  int hosts = 1;
  Bandwidth link;            ///< of every host; zero: not stated
  Time predicted;            ///< p50, at the calibration's speed
  Time measured;             ///< median over repeats of each repeat's median, as it was
  Time measured_normalised;  ///< the same at the calibration's speed; errors are against this
  double repeat_spread = 0;  ///< (max - min) / median over repeats, normalised
  double error = 0;          ///< predicted / measured_normalised - 1, signed
  bool host_bound = false;
  bool stable = true;
  Basis basis = Basis::measured;
  bool operator==(const ValidationPoint&) const = default;
};

/// Points of one kind; n = 1 points are listed, not averaged.
struct ValidationGroup {
  std::string name;
  double mean_error = 0, worst_error = 0;  ///< of absolute errors of stable points with n > 1
  std::vector<ValidationPoint> points;
  bool operator==(const ValidationGroup&) const = default;
};

struct Validation {
  std::string calibration;
  std::vector<ValidationGroup> groups;
  bool operator==(const Validation&) const = default;
};

Validation read_validation(const std::string& file);
void write_validation(const Validation& validation, const std::string& file);

}  // namespace lockstep
