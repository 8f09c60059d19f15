#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lockstep {

/// Levels of arrays and objects inside each other; records of ours use fewer than ten.
inline constexpr std::size_t kDeepestJson = 32;

/// A key as it stands in a JSON pointer (RFC 6901): "~" becomes "~0", "/" becomes "~1".
std::string escape_pointer(std::string_view key);

/// Parses `text`, the content of `file`, strictly: one value, no duplicate keys, no numbers that a
/// double cannot hold. Throws InputError with line and column, or with the JSON pointer.
nlohmann::json parse_json(const std::string& file, const std::string& text);

/// read_file and parse_json, with their limits.
nlohmann::json read_json(const std::string& file);

/// Readable and small: what fits on a line of 100 columns stands on one, the rest is broken up.
std::string to_text(const nlohmann::ordered_json& value);

}  // namespace lockstep
