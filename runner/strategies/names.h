#pragma once

#include <string>
#include <vector>

namespace lockstep::runner {

/// The strategies that make_strategy takes.
std::vector<std::string> strategy_names();

}  // namespace lockstep::runner
