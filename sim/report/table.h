#pragma once

#include <string>

#include "sim/records/result.h"

namespace lockstep {

/// A prediction for people: what it is, one line per point, and where each step goes.
std::string to_table(const Prediction& prediction);

/// The same as comma-separated values with a line of column names; times in nanoseconds.
std::string to_csv(const Prediction& prediction);

}  // namespace lockstep
