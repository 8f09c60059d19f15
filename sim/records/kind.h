#pragma once

#include <string>

namespace lockstep {

/// What the record in `file` says it is: "calibration", "runs", ... Throws InputError where it says
/// nothing.
std::string record_kind(const std::string& file);

}  // namespace lockstep
