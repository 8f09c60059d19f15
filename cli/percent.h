#pragma once

#include <optional>
#include <string>

namespace lockstep::cli {

/// "2%" as 0.02; nothing where the flag was not given. Throws InputError for anything else.
std::optional<double> parse_percent(const std::string& flag, const std::string& text);

}  // namespace lockstep::cli
