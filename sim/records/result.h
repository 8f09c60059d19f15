#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/time.h"
#include "sim/core/units.h"
#include "sim/records/run.h"

namespace lockstep {

/// Parts of a step; they add up to it exactly, `hidden` stands beside.
struct Breakdown {
  Time compute, exposed, waiting, host, input, idle;
  Time hidden;  ///< communication while the compute lane is busy
  Time step() const { return compute + exposed + waiting + host + input + idle; }
  bool operator==(const Breakdown&) const = default;
};

enum class Basis { measured, interpolated, extrapolated };

/// Relative, one standard deviation.
struct Uncertainty {
  double repeat = 0, fit = 0, drawn = 0;
  bool operator==(const Uncertainty&) const = default;
};

/// Rounded so that the parts in whole nanoseconds still add up to the rounded step.
Breakdown in_whole_nanoseconds(const Breakdown& exact);

/// One point of a scaling curve.
struct ResultPoint {
  int workers = 1;
  int batch_per_worker = 0;
  std::string strategy;
  Quantiles step;
  Uncertainty uncertainty;
  Basis basis = Basis::measured;
  double throughput = 0;  ///< samples a second, all workers
  double speedup = 1, efficiency = 1;
  Breakdown breakdown;      ///< mean over steps, of the slowest worker
  double host_busy = 0;     ///< share of the step in which the busiest worker's host issues
  bool host_bound = false;  ///< host lane >= 90 % busy
  std::vector<BucketTimes> buckets;
  Time epoch_with_input, epoch_without_input;  ///< zero where the data set's size is not known
  Bytes peak;                                  ///< memory of one device; zero: not measured
  std::optional<ServerStatistics> servers = {};
  bool operator==(const ResultPoint&) const = default;
};

/// What a simulation says; rendered as table, JSON and CSV.
struct Prediction {
  std::string scenario;  ///< its name
  std::string model;
  std::string calibration;  ///< id
  bool weak = true;         ///< batch per worker fixed; else total batch fixed
  std::string precision = "fp32";
  Sync sync = Sync::step;  ///< as in the runs that it may be compared with
  bool graph = false;
  std::vector<ResultPoint> points;
  bool operator==(const Prediction&) const = default;
};

Prediction read_result(const std::string& file);
void write_result(const Prediction& prediction, const std::string& file);

}  // namespace lockstep
