#pragma once

#include <optional>

#include "sim/collectives/schedule.h"
#include "sim/core/time.h"
#include "sim/core/units.h"

namespace lockstep {

/// Ranks on hosts, each with a cable to one switch that never blocks; what a message takes comes
/// from Collective::step besides.
struct CollectivePlatform {
  std::uint32_t per_host = 1;        ///< ranks, hosts filled one after another
  Bandwidth between_hosts = {};      ///< of a host's cable, each way
  std::optional<Bandwidth> in_host;  ///< of a rank's link within its host; none: no limit
};

/// Runs the schedule's collective in the engine and enters when its messages go. Throws InputError
/// where it would last longer than a week, or be so many ranks that the engine takes seconds.
void time_messages(Schedule& schedule, const CollectivePlatform& platform);

/// What costs.h says of it: where every host has one rank, and of a hierarchical all-reduce, whose
/// ranks share their host's cable.
std::optional<Time> expected_time(const Schedule& schedule, const CollectivePlatform& platform);

}  // namespace lockstep
