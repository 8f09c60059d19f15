#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/error.h"

namespace lockstep {

/// A hand-written file as a plain tree: every node knows where it stands. Aliases are expanded.
struct ConfigNode {
  enum class Kind : std::uint8_t { null, scalar, list, map };
  Kind kind = Kind::null;
  Location at;
  std::string scalar;
  std::vector<ConfigNode> keys;   ///< of a map: scalars, each naming the item of its place
  std::vector<ConfigNode> items;  ///< of a list, or the values of a map
};

/// Reads YAML; duplicate keys, more than one document and files that are too large, too deep or
/// cyclic throw InputError with file:line:column. `file` only names the source in messages.
ConfigNode parse_yaml(const std::string& text, const std::string& file);
ConfigNode read_yaml(const std::string& file);

/// Replaces or adds one value: "strategy.bucket_cap=4MiB"; the value is YAML. Throws InputError
/// ("--set ...") where the text has no '=' or the path leads through something that is no map.
void set_value(ConfigNode& root, const std::string& assignment);

}  // namespace lockstep
