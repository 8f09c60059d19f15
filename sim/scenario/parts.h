#pragma once

#include <vector>

#include "sim/scenario/config_node.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

inline constexpr std::int64_t kMostWorkers = 4096;
inline constexpr std::size_t kMostPoints = 256;

/// Readers of single sections of a scenario; all throw InputError.
PlatformOptions read_platform(const ConfigNode& node, const std::vector<int>& workers);
void read_stragglers(const ConfigNode& list, Scenario& scenario);
/// One of them, whatever the number of workers.
Straggler read_straggler(const ConfigNode& node);
std::vector<StepTime> read_step_times(const ConfigNode& node);
InputOptions read_input(const ConfigNode& node);
/// Batch and workers must have been read.
DatasetOptions read_dataset(const ConfigNode& node, const Scenario& scenario);

}  // namespace lockstep
