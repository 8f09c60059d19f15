#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/time.h"
#include "sim/core/units.h"
#include "sim/scenario/config_node.h"

namespace lockstep {

/// The keys of one map of a file. Every key that may occur is asked for; `finish` then refuses the
/// others and names the nearest that was asked for. All throw InputError.
class Fields {
 public:
  /// `path` is the dotted way to the map, for messages; empty at the top.
  Fields(const ConfigNode& map, std::string path);

  /// Null where the key is absent.
  const ConfigNode* find(std::string_view key);
  const ConfigNode& require(std::string_view key, std::string_view example);
  std::string name_of(std::string_view key) const;
  void finish() const;

 private:
  const ConfigNode& map_;
  std::string path_;
  std::vector<std::string> asked_;
};

/// Readers of single values; `name` is the dotted key.
std::string to_text(const ConfigNode& node, const std::string& name);
/// A file's path: in a file relative to that, given by a flag ("--set ...") to the working
/// directory.
std::string to_path(const ConfigNode& node, const std::string& name);
std::int64_t to_integer(const ConfigNode& node, const std::string& name, std::int64_t least,
                        std::int64_t most);
std::uint64_t to_unsigned(const ConfigNode& node, const std::string& name);
double to_number(const ConfigNode& node, const std::string& name, double least, double most);
bool to_switch(const ConfigNode& node, const std::string& name);
/// One of `words`, as its index.
std::size_t to_choice(const ConfigNode& node, const std::string& name,
                      std::span<const std::string_view> words);
Time to_time(const ConfigNode& node, const std::string& name);
Bytes to_bytes(const ConfigNode& node, const std::string& name);
Bandwidth to_bandwidth(const ConfigNode& node, const std::string& name);
const std::vector<ConfigNode>& to_list(const ConfigNode& node, const std::string& name,
                                       std::size_t most);

/// The word of `known` that `word` probably meant, or empty.
std::string nearest_word(std::string_view word, std::span<const std::string> known);

}  // namespace lockstep
