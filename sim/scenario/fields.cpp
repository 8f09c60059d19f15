#include "sim/scenario/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <numeric>

namespace lockstep {
namespace {

using Kind = ConfigNode::Kind;

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::null:
      return "nothing";
    case Kind::scalar:
      return "a single value";
    case Kind::list:
      return "a list";
    case Kind::map:
      return "a map";
  }
  return "";
}

void expect(const ConfigNode& node, Kind kind, const std::string& name) {
  if (node.kind == kind) return;
  throw InputError(node.at, name,
                   fmt::format("expected {}, found {}", kind_name(kind), kind_name(node.kind)));
}

/// Long or unprintable values would spoil the one line of a message.
std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::string result(text.substr(0, kMost));
  std::ranges::replace_if(
      result, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  return text.size() > kMost ? result + "..." : result;
}

[[noreturn]] void refuse(const ConfigNode& node, const std::string& name, std::string_view wanted) {
  throw InputError(node.at, name, fmt::format("'{}' is not {}", shown(node.scalar), wanted));
}

template <typename Number>
bool parse_whole(const std::string& text, Number& value) {
  // 032 is 26 to some readers of YAML and 32 to others.
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  const bool octal = text.size() > first + 1 && text[first] == '0' && text[first + 1] != '.';
  if (octal) return false;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && !text.empty();
}

/// Edits (insert, remove, replace) from one word to the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

template <typename Quantity>
Quantity to_quantity(const ConfigNode& node, const std::string& name,
                     Quantity (*parse)(std::string_view)) {
  expect(node, Kind::scalar, name);
  try {
    return parse(node.scalar);
  } catch (const std::invalid_argument& error) {
    throw InputError(node.at, name, error.what());
  }
}

}  // namespace

Fields::Fields(const ConfigNode& map, std::string path) : map_(map), path_(std::move(path)) {
  expect(map, Kind::map, path_);
}

std::string Fields::name_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const ConfigNode* Fields::find(std::string_view key) {
  if (std::ranges::find(asked_, key) == asked_.end()) asked_.emplace_back(key);
  const auto found = std::ranges::find(map_.keys, key, &ConfigNode::scalar);
  if (found == map_.keys.end()) return nullptr;
  return &map_.items[static_cast<std::size_t>(found - map_.keys.begin())];
}

const ConfigNode& Fields::require(std::string_view key, std::string_view example) {
  if (const ConfigNode* node = find(key)) return *node;
  throw InputError(map_.at, name_of(key), "missing", fmt::format("such as {}: {}", key, example));
}

void Fields::finish() const {
  for (const ConfigNode& key : map_.keys) {
    if (std::ranges::find(asked_, key.scalar) != asked_.end()) continue;
    const std::string meant = nearest_word(key.scalar, asked_);
    throw InputError(key.at, name_of(shown(key.scalar)), "unknown key",
                     meant.empty() ? fmt::format("known are {}", fmt::join(asked_, ", "))
                                   : fmt::format("did you mean '{}'?", meant));
  }
}

std::string nearest_word(std::string_view word, std::span<const std::string> known) {
  constexpr std::size_t kLongest = 40;
  if (word.size() > kLongest) return "";
  std::string best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= least || distance >= candidate.size()) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

std::string to_text(const ConfigNode& node, const std::string& name) {
  expect(node, Kind::scalar, name);
  const bool unprintable = std::ranges::any_of(
      node.scalar, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
  if (node.scalar.empty() || unprintable) throw InputError(node.at, name, "empty or unprintable");
  return node.scalar;
}

std::string to_path(const ConfigNode& node, const std::string& name) {
  const std::filesystem::path path = to_text(node, name);
  if (path.is_absolute() || node.at.file.starts_with("--")) return path.string();
  return (std::filesystem::path(node.at.file).parent_path() / path).lexically_normal().string();
}

std::int64_t to_integer(const ConfigNode& node, const std::string& name, std::int64_t least,
                        std::int64_t most) {
  expect(node, Kind::scalar, name);
  std::int64_t value = 0;
  if (!parse_whole(node.scalar, value) || value < least || value > most) {
    refuse(node, name, fmt::format("a whole number from {} to {}", least, most));
  }
  return value;
}

std::uint64_t to_unsigned(const ConfigNode& node, const std::string& name) {
  expect(node, Kind::scalar, name);
  std::uint64_t value = 0;
  if (!parse_whole(node.scalar, value)) refuse(node, name, "a whole number from 0 to 2^64-1");
  return value;
}

double to_number(const ConfigNode& node, const std::string& name, double least, double most) {
  expect(node, Kind::scalar, name);
  double value = 0;
  // The comparison also refuses NaN.
  if (!parse_whole(node.scalar, value) || !(value >= least && value <= most)) {
    refuse(node, name, fmt::format("a number from {} to {}", least, most));
  }
  return value;
}

bool to_switch(const ConfigNode& node, const std::string& name) {
  constexpr std::string_view kWords[] = {"false", "true", "off", "on", "no", "yes"};
  return to_choice(node, name, kWords) % 2 == 1;
}

std::size_t to_choice(const ConfigNode& node, const std::string& name,
                      std::span<const std::string_view> words) {
  expect(node, Kind::scalar, name);
  const auto found = std::ranges::find(words, node.scalar);
  if (found == words.end()) refuse(node, name, fmt::format("one of {}", fmt::join(words, ", ")));
  return static_cast<std::size_t>(found - words.begin());
}

Time to_time(const ConfigNode& node, const std::string& name) {
  return to_quantity(node, name, parse_time);
}
Bytes to_bytes(const ConfigNode& node, const std::string& name) {
  return to_quantity(node, name, parse_bytes);
}
Bandwidth to_bandwidth(const ConfigNode& node, const std::string& name) {
  return to_quantity(node, name, parse_bandwidth);
}

const std::vector<ConfigNode>& to_list(const ConfigNode& node, const std::string& name,
                                       std::size_t most) {
  expect(node, Kind::list, name);
  if (node.items.size() > most) {
    throw InputError(node.at, name, fmt::format("{} values", node.items.size()),
                     fmt::format("at most {}", most));
  }
  return node.items;
}

}  // namespace lockstep
