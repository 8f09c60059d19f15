#include "sim/scenario/config_node.h"

#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "sim/core/files.h"

namespace lockstep {
namespace {

// A scenario is a page; what is larger is not one, and would only take time to refuse.
constexpr std::size_t kMostBytes = 64 * 1024;
constexpr int kMostNesting = 24;
constexpr int kMostNodes = 5000;

Location location(const std::string& file, const YAML::Mark& mark) {
  if (mark.is_null()) return {.file = file, .line = 0, .column = 0, .pointer = {}};
  return {.file = file, .line = mark.line + 1, .column = mark.column + 1, .pointer = {}};
}

/// Copies the parser's graph, in which aliases share nodes, into a tree.
class TreeBuilder {
 public:
  explicit TreeBuilder(std::string file) : file_(std::move(file)) {}

  ConfigNode copy(const YAML::Node& node, int depth) {
    ConfigNode result;
    result.at = location(file_, node.Mark());
    if (depth > kMostNesting) {
      throw InputError(
          result.at, "", "nested too deeply",
          fmt::format("at most {} levels; an anchor cannot contain itself", kMostNesting));
    }
    if (++nodes_ > kMostNodes) {
      throw InputError(result.at, "", "too many values",
                       fmt::format("at most {}, aliases expanded", kMostNodes));
    }
    // "?" and "!": none was written, of a plain and of a quoted value.
    if (!node.Tag().empty() && node.Tag() != "?" && node.Tag() != "!") {
      throw InputError(result.at, "", "tags are not used here", "leave out what begins with !");
    }
    if (node.IsScalar()) {
      result.kind = ConfigNode::Kind::scalar;
      result.scalar = node.Scalar();
    } else if (node.IsSequence()) {
      result.kind = ConfigNode::Kind::list;
      for (const YAML::Node& item : node) result.items.push_back(copy(item, depth + 1));
    } else if (node.IsMap()) {
      result.kind = ConfigNode::Kind::map;
      copy_entries(node, depth, result);
    }
    return result;
  }

 private:
  void copy_entries(const YAML::Node& node, int depth, ConfigNode& result) {
    for (const auto& entry : node) {
      ConfigNode key = copy(entry.first, depth + 1);
      if (key.kind != ConfigNode::Kind::scalar) {
        throw InputError(key.at, "", "a key must be a plain word");
      }
      for (const ConfigNode& earlier : result.keys) {
        if (earlier.scalar != key.scalar) continue;
        throw InputError(key.at, key.scalar, "given twice",
                         fmt::format("the first is in line {}", earlier.at.line));
      }
      result.items.push_back(copy(entry.second, depth + 1));
      // Nothing stands where the next thing does.
      if (entry.second.IsNull()) result.items.back().at = key.at;
      result.keys.push_back(std::move(key));
    }
  }

  std::string file_;
  int nodes_ = 0;
};

void check_text(const std::string& text, const std::string& file) {
  const Location whole{.file = file, .line = 0, .column = 0, .pointer = {}};
  if (text.size() > kMostBytes) {
    throw InputError(whole, "", "too large", fmt::format("at most {} bytes", kMostBytes));
  }
  if (text.starts_with("\x1f\x8b")) throw InputError(whole, "", "is compressed", "gunzip it first");
  if (text.find('\0') != std::string::npos) throw InputError(whole, "", "not a text file");
}

/// Whether line `number` (from 1) is indented with a tab, which YAML forbids.
bool has_tab_indent(const std::string& text, int number) {
  std::istringstream lines(text);
  std::string line;
  while (number-- > 0) std::getline(lines, line);
  const std::size_t begin = line.find_first_not_of(" \t");
  return line.substr(0, begin).find('\t') != std::string::npos;
}

/// The parser's own words, where people would not guess what they mean, in ours.
InputError explained(const YAML::Exception& error, const std::string& text,
                     const std::string& file) {
  const Location at = location(file, error.mark);
  if (has_tab_indent(text, at.line) || has_tab_indent(text, at.line - 1)) {
    return {at, "", "a tab in the indentation", "indent with spaces"};
  }
  struct Words {
    std::string_view parser, what, hint;
  };
  static const Words kWords[] = {
      // How the parser says that it would not go deeper.
      {YAML::ErrorMsg::BAD_FILE, "nested too deeply", "a scenario is a few levels deep"},
      {YAML::ErrorMsg::END_OF_SEQ_FLOW, "a list is not closed", "add the missing ]"},
      {YAML::ErrorMsg::END_OF_MAP_FLOW, "a map is not closed", "add the missing }"},
      {YAML::ErrorMsg::MAP_VALUE, "a ':' where no key can be",
       "one key a line, or {key: value, key: value}; quote a text that holds ': '"},
  };
  for (const Words& words : kWords) {
    if (words.parser == error.msg) return {at, "", words.what, words.hint};
  }
  return {at, "", error.msg};
}

YAML::Node load(const std::string& text, const std::string& file) {
  const std::vector<YAML::Node> documents = YAML::LoadAll(text);
  if (documents.empty() || documents.front().IsNull()) {
    throw InputError({.file = file, .line = 0, .column = 0, .pointer = {}}, "", "empty",
                     "write it; the folder scenarios/ holds examples");
  }
  if (documents.size() > 1) {
    throw InputError(location(file, documents[1].Mark()), "", "more than one document");
  }
  return documents.front();
}

ConfigNode& child(ConfigNode& map, const std::string& key, const Location& at) {
  if (map.kind == ConfigNode::Kind::null) map.kind = ConfigNode::Kind::map;
  if (map.kind != ConfigNode::Kind::map) {
    throw InputError(at, key, "the path leads through a value that has no keys");
  }
  const auto found = std::ranges::find(map.keys, key, &ConfigNode::scalar);
  if (found != map.keys.end()) {
    return map.items[static_cast<std::size_t>(found - map.keys.begin())];
  }
  map.keys.push_back(
      {.kind = ConfigNode::Kind::scalar, .at = at, .scalar = key, .keys = {}, .items = {}});
  return map.items.emplace_back();
}

}  // namespace

ConfigNode parse_yaml(const std::string& text, const std::string& file) {
  check_text(text, file);
  try {
    return TreeBuilder(file).copy(load(text, file), 0);
  } catch (const YAML::Exception& error) {
    throw explained(error, text, file);
  }
}

ConfigNode read_yaml(const std::string& file) {
  return parse_yaml(read_file(file, kMostBytes), file);
}

void set_value(ConfigNode& root, const std::string& assignment) {
  constexpr std::size_t kShown = 80;
  const bool long_one = assignment.size() > kShown;
  const std::string shown = assignment.substr(0, kShown) + (long_one ? "..." : "");
  const Location at{.file = "--set " + shown, .line = 0, .column = 0, .pointer = {}};
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw InputError(at, "", "no value", "write key=value, such as strategy.bucket_cap=4MiB");
  }
  ConfigNode* node = &root;
  std::string_view path(assignment.data(), equals);
  for (bool more = true; more;) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    if (dot == 0) throw InputError(at, "", "a key is empty", "write strategy.bucket_cap=4MiB");
    node = &child(*node, std::string(path.substr(0, dot)), at);
    more = dot < path.size();
    path.remove_prefix(more ? dot + 1 : dot);
  }
  *node = parse_yaml(assignment.substr(equals + 1), at.file);
}

}  // namespace lockstep
