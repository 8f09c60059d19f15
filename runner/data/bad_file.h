#pragma once

#include <string>
#include <string_view>

#include "sim/core/error.h"

namespace lockstep::runner {

/// Refuses a file of data.
[[noreturn]] inline void reject_file(const std::string& file, std::string_view what,
                                     std::string_view hint = "") {
  throw InputError({.file = file}, "", what, hint);
}

}  // namespace lockstep::runner
