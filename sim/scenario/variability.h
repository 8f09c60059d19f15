#pragma once

#include <string>

#include "sim/core/time.h"
#include "sim/core/variability.h"
#include "sim/scenario/config_node.h"

namespace lockstep {

/// A slow-down as written: a number, or the kind of a distribution and what it takes:
///   {kind: log_normal, sigma: 0.2, median: 1.1}      {kind: pareto, shape: 3, scale: 1}
///   {kind: periodic, factor: 3, every: 10}           {kind: samples, file: factors.txt}
/// and besides `least`, `aligned` (periodic) and `order: drawn | listed` (samples).
struct WrittenFactor {
  double typical = 1;  ///< what is drawn is a factor on it
  Variability variability = {};
};
WrittenFactor read_varying_factor(const ConfigNode& node, const std::string& name);

/// The same of a delay: a time, or
///   {kind: log_normal, sigma: 0.5, median: 5ms}      {kind: pareto, shape: 3, scale: 5ms}
///   {kind: periodic, duration: 50ms, every: 10}      {kind: samples, file: durations.txt}
///   {kind: periodic, duration: 50ms, period: 2s}
struct WrittenDelay {
  Time typical = {};
  Variability variability = {};
};
WrittenDelay read_varying_delay(const ConfigNode& node, const std::string& name);

/// The values of a file of samples, one a line, empty lines and those that begin with '#' left out:
/// factors ("1.25"), or durations ("12ms") in units of kSampleUnit. Throws InputError with the line
/// where one is neither, and where there is none at all.
inline constexpr Time kSampleUnit = Time::milliseconds(10);
std::vector<double> read_factor_samples(const std::string& file);
std::vector<double> read_duration_samples(const std::string& file);

}  // namespace lockstep
