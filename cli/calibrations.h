#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.h"

namespace lockstep::cli {

/// Files of all calibrations that a scenario names, which no output may replace.
inline std::vector<std::string> calibrations_of(const Scenario& scenario) {
  std::vector<std::string> files{scenario.calibration};
  for (const DeviceClass& devices : scenario.devices) files.push_back(devices.calibration);
  return files;
}

}  // namespace lockstep::cli
