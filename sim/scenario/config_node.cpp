#include "sim/scenario/config_node.h"

#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

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
      throw InputError(result.at, "", "nested too deeply",
                       "an anchor that contains itself is not allowed");
    }
    if (++nodes_ > kMostNodes) {
      throw InputError(result.at, "", "too many values",
                       fmt::format("at most {}, aliases expanded", kMostNodes));
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
      result.keys.push_back(std::move(key));
    }
  }

  std::string file_;
  int nodes_ = 0;
};

/// The parser recurses; this bounds how deep before it is called. Brackets within quotes count too,
/// which only makes the bound stricter. Block nesting costs two columns a level.
void check_nesting(const std::string& text, const std::string& file) {
  int depth = 0;
  int line = 1;
  for (char c : text) {
    if (c == '\n') ++line;
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (depth > kMostNesting) {
      throw InputError({.file = file, .line = line, .column = 1, .pointer = {}}, "",
                       "nested too deeply");
    }
  }
}

void check_text(const std::string& text, const std::string& file) {
  const Location whole{.file = file, .line = 0, .column = 0, .pointer = {}};
  if (text.size() > kMostBytes) {
    throw InputError(whole, "", "too large", fmt::format("at most {} bytes", kMostBytes));
  }
  if (text.find('\0') != std::string::npos) throw InputError(whole, "", "not a text file");
  check_nesting(text, file);
}

YAML::Node load(const std::string& text, const std::string& file) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.empty() || documents.front().IsNull()) {
      throw InputError({.file = file, .line = 0, .column = 0, .pointer = {}}, "", "empty");
    }
    if (documents.size() > 1) {
      throw InputError(location(file, documents[1].Mark()), "", "more than one document");
    }
    return documents.front();
  } catch (const YAML::Exception& error) {
    throw InputError(location(file, error.mark), "", error.msg);
  }
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
  const YAML::Node root = load(text, file);
  try {
    return TreeBuilder(file).copy(root, 0);
  } catch (const YAML::Exception& error) {
    throw InputError(location(file, error.mark), "", error.msg);
  }
}

ConfigNode read_yaml(const std::string& file) {
  const Location whole{.file = file, .line = 0, .column = 0, .pointer = {}};
  if (std::filesystem::is_directory(file)) {
    throw InputError(whole, "", "is a folder", "name a file in it");
  }
  if (!std::filesystem::is_regular_file(file)) throw InputError(whole, "", "no such file");
  std::ifstream stream(file, std::ios::binary);
  std::string text(kMostBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad() || !stream.is_open()) throw InputError(whole, "", "cannot be read");
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return parse_yaml(text, file);
}

void set_value(ConfigNode& root, const std::string& assignment) {
  const Location at{.file = "--set " + assignment, .line = 0, .column = 0, .pointer = {}};
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw InputError(at, "", "no value", "write key=value, such as strategy.bucket_cap=4MiB");
  }
  ConfigNode* node = &root;
  std::istringstream path(assignment.substr(0, equals));
  for (std::string key; std::getline(path, key, '.');) node = &child(*node, key, at);
  *node = parse_yaml(assignment.substr(equals + 1), at.file);
}

}  // namespace lockstep
