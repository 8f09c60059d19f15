#include "sim/records/json_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/files.h"
#include "sim/records/json_quick.h"

namespace lockstep {
namespace {

using nlohmann::json;

/// The part of nlohmann's message that says what was wrong, without its code and position.
std::string reason(std::string_view message) {
  for (const std::string_view lead : {"syntax error ", "parse_error.101] ", "406] "}) {
    if (const auto at = message.find(lead); at != std::string_view::npos) {
      message.remove_prefix(at + lead.size());
      break;
    }
  }
  constexpr std::size_t kLongest = 120;  // it may quote a whole string of the file
  std::string text(message.substr(0, kLongest));
  if (message.size() > kLongest) text += "...";
  return text;
}

/// Builds the value and refuses what nlohmann's own builder lets through.
class Builder : public nlohmann::json_sax<json> {
 public:
  Builder(const std::string& file, const std::string& text) : file_(file), text_(text) {}

  json take() { return std::move(root_); }

  bool null() override { return put(json(nullptr)) != nullptr; }
  bool boolean(bool value) override { return put(json(value)) != nullptr; }
  bool number_integer(number_integer_t value) override { return put(json(value)) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return put(json(value)) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override {
    return put(json(value)) != nullptr;
  }
  bool string(string_t& value) override { return put(json(std::move(value))) != nullptr; }
  bool binary(binary_t&) override { return false; }  // JSON text holds none

  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    if (open_.back()->contains(value)) {
      throw InputError({file_, 0, 0, pointer() + "/" + escape_pointer(value)}, "", "duplicate key",
                       "keep one of the two");
    }
    keys_.back() = std::move(value);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const std::size_t at = std::min(position > 0 ? position - 1 : 0, text_.size());
    const auto before = std::string_view(text_).substr(0, at);
    const int line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
    const auto line_start = before.rfind('\n');
    const auto column = before.size() - (line_start == before.npos ? 0 : line_start + 1) + 1;
    const std::string what = error.what();
    const bool at_end = position >= text_.size();
    const bool cut = at_end && (what.find("unexpected end of input") != std::string::npos ||
                                what.find("missing closing quote") != std::string::npos);
    throw InputError({file_, line, static_cast<int>(column), ""}, "",
                     cut ? "the file ends too early" : "not JSON: " + reason(what),
                     cut ? "it may be truncated: write or copy it again" : "");
  }

 private:
  json* put(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[keys_.back()] = std::move(value));
  }

  bool open(json value) {
    if (open_.size() >= kDeepestJson) {
      throw InputError({file_, 0, 0, pointer()}, "",
                       fmt::format("nested deeper than {} levels", kDeepestJson),
                       "no record of lockstep is");
    }
    open_.push_back(put(std::move(value)));
    keys_.emplace_back();
    return true;
  }

  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  std::string pointer() const {
    std::string out;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      const json& level = *open_[i];
      out += "/" + (level.is_array() ? std::to_string(level.size() - 1) : escape_pointer(keys_[i]));
    }
    return out;
  }

  const std::string& file_;
  const std::string& text_;
  json root_;
  std::vector<json*> open_;  // from the root to the innermost open array or object; a parent does
                             // not grow while a child is open, so the pointers hold
  std::vector<std::string> keys_;  // the current key of each
};

void append(std::string& out, const nlohmann::ordered_json& value, std::size_t indent) {
  constexpr std::size_t kColumns = 100;
  const std::string flat =
      value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  if (!value.is_structured() || value.empty() || indent + flat.size() <= kColumns) {
    out += flat;
    return;
  }
  const bool object = value.is_object();
  out += object ? '{' : '[';
  bool first = true;
  for (const auto& item : value.items()) {
    out += first ? "\n" : ",\n";
    first = false;
    out.append(indent + 1, ' ');
    if (object) out += nlohmann::ordered_json(item.key()).dump() + ": ";
    append(out, item.value(), indent + 1);
  }
  out += '\n';
  out.append(indent, ' ');
  out += object ? '}' : ']';
}

}  // namespace

std::string escape_pointer(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

json parse_json(const std::string& file, const std::string& text) {
  if (text.find_first_not_of(" \t\r\n") == text.npos) {
    throw InputError({file, 0, 0, ""}, "", "the file is empty", "write it again");
  }
  if (text.starts_with("\x1f\x8b")) {
    throw InputError({file, 0, 0, ""}, "", "is compressed", "gunzip it first");
  }
  if (std::optional<json> quick = parse_json_quickly(text)) return *std::move(quick);
  Builder builder(file, text);
  json::sax_parse(text, &builder);
  return builder.take();
}

json read_json(const std::string& file) {
  return parse_json(file, read_file(file));
}

std::string to_text(const nlohmann::ordered_json& value) {
  std::string out;
  append(out, value, 0);
  out += '\n';
  return out;
}

}  // namespace lockstep
