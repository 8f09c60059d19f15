#pragma once

#include <string>
#include <vector>

#include "sim/records/origin.h"

namespace lockstep::runner {

/// Cores that this process may use, ascending.
std::vector<int> usable_cores();
/// Binds the calling thread, and the threads it makes from here on, to those cores.
void bind_to_cores(const std::vector<int>& cores);

/// Where and how this process measures: machine, software, the few variables of the environment
/// that change speed, command and date. Nothing that names a person or a host.
/// `cores`: of the host, usable by its workers together; 0: those of the calling thread.
Origin make_origin(const std::string& command, int cores = 0);

/// ISO 8601, UTC; `compact` without separators, for ids.
std::string utc_now(bool compact = false);

}  // namespace lockstep::runner
