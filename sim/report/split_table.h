#pragma once

#include <string>

#include "sim/split.h"

namespace lockstep {

/// For people: how the batch is best shared out, what that comes to, and who is worth having.
std::string to_table(const SplitAnswer& answer);

}  // namespace lockstep
