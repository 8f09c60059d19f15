#pragma once

#include <string>

#include "sim/records/result.h"

namespace lockstep {

/// Two results side by side, for people: for each number of workers that both hold, both steps,
/// how many times as long the second takes, and where most of the difference lies. Throws
/// InputError where they share no number of workers.
std::string compare_table(const Prediction& a, const Prediction& b);

}  // namespace lockstep
