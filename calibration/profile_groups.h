#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "calibration/robust.h"
#include "sim/records/measurement.h"

namespace lockstep {

/// (model, batch, precision, graph, beside)
using ProfileKey = std::tuple<std::string, int, std::string, bool, int>;
using ProfileGroups = std::map<ProfileKey, std::vector<const ProfileSample*>>;

inline ProfileGroups by_key(const std::vector<ProfileSample>& samples) {
  ProfileGroups groups;
  for (const ProfileSample& sample : samples) {
    const Profile& p = sample.profile;
    groups[{p.model, p.batch, p.precision, p.graph, p.beside}].push_back(&sample);
  }
  return groups;
}

/// Of the unprofiled steps, where there are some.
inline Time median_step(const ProfileSample& sample) {
  return sample.steps.empty() ? sample.profile.step : median(sample.steps);
}

}  // namespace lockstep
