#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/time.h"
#include "sim/records/result.h"

namespace lockstep {

/// One measured run beside its prediction; or one collective, which then is the strategy, and has
/// no model and batch zero.
struct ValidationPoint {
  std::string run;
  std::string model, strategy;
  int batch_per_worker = 0, workers = 1;
  bool graph = false;
  Sync sync = Sync::step;
  Compute compute = Compute::real;
  int slow_motion = 1;
  int hosts = 1;
  Bandwidth link;            ///< of every host; zero: not stated
  Bytes bytes = {};          ///< of a collective's time; zero: of a step
  Time predicted;            ///< p50, at the calibration's speed
  Time measured;             ///< median over repeats of each repeat's median, as it was
  Time measured_normalised;  ///< the same at the calibration's speed; errors are against this
  double repeat_spread = 0;  ///< (max - min) / median over repeats, normalised
  double error = 0;          ///< predicted / measured_normalised - 1, signed
  bool host_bound = false;
  bool stable = true;
  Basis basis = Basis::measured;
  /// Share of all measured steps, at the calibration's speed, between the predicted p10 and p90;
  /// none where the record came without its samples.
  std::optional<double> in_band = {};
  bool operator==(const ValidationPoint&) const = default;
};

/// Points of one kind; n = 1 points are listed, not averaged.
struct ValidationGroup {
  std::string name;
  double mean_error = 0, worst_error = 0;  ///< of absolute errors of stable points with n > 1
  std::vector<ValidationPoint> points;
  /// What Lockstep wants of itself.
  std::optional<double> wanted_mean = {}, wanted_worst = {};
  /// The mean over the points of wanted_mean, or of half the range of a point's repeats where that
  /// is more: what is wanted where repeats say no better.
  std::optional<double> allowed_mean = {};
  /// It does not compare steps as they were asked for: bounds on the errors of steps are not meant
  /// for it, and figures of steps leave it out.
  bool own_question = false;
  bool operator==(const ValidationGroup&) const = default;
};

struct Validation {
  std::string calibration;
  std::vector<ValidationGroup> groups;
  bool operator==(const Validation&) const = default;
};

/// Whether a group's errors are what is wanted; true where nothing is.
bool held(const ValidationGroup& group);

Validation read_validation(const std::string& file);
void write_validation(const Validation& validation, const std::string& file);

}  // namespace lockstep
