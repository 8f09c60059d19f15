#include "sim/records/json_fields.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/core/error.h"
#include "sim/records/json_text.h"
#include "sim/records/origin.h"

namespace lockstep {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::string quoted(const json& value) {
  constexpr std::size_t kLongest = 40;
  std::string text = value.is_structured()
                         ? std::string(value.is_array() ? "a list" : "an object")
                         : value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

/// "a whole number from 0 to 1000000000"
std::string expectation(std::string_view what, Range range) {
  return fmt::format("expected {} from {:.15g} to {:.15g}", what, range.min, range.max);
}

std::int64_t whole(const json& in, const JsonPath& at, Range range, std::string_view what) {
  if (!in.is_number_integer()) {
    at.fail(fmt::format("{} is not {}", quoted(in), what), expectation(what, range));
  }
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool fits = !in.is_number_unsigned() || in.get<std::uint64_t>() <= kMost;
  const std::int64_t value = fits ? in.get<std::int64_t>() : 0;
  const auto approximate = static_cast<double>(value);
  if (!fits || approximate < range.min || approximate > range.max) {
    at.fail(quoted(in) + " is out of range", expectation(what, range));
  }
  return value;
}

}  // namespace

std::string JsonPath::pointer() const {
  if (parent_ == nullptr) return "";
  const std::string out = parent_->pointer() + "/";
  if (key_.data() == nullptr) return out + std::to_string(index_);
  return out + escape_pointer(key_);
}

void JsonPath::fail(std::string_view what, std::string_view hint) const {
  throw InputError({file(), 0, 0, pointer()}, "", what, hint);
}

void read_value(const json& in, const JsonPath& at, Range, bool& out) {
  if (!in.is_boolean()) at.fail(quoted(in) + " is not true or false");
  out = in.get<bool>();
}
void read_value(const json& in, const JsonPath& at, Range range, int& out) {
  out = static_cast<int>(whole(in, at, range, "a whole number"));
}
void read_value(const json& in, const JsonPath& at, Range range, std::int64_t& out) {
  out = whole(in, at, range, "a whole number");
}
void read_value(const json& in, const JsonPath& at, Range range, double& out) {
  if (!in.is_number()) {
    at.fail(quoted(in) + " is not a number", expectation("a number", range));
  }
  out = in.get<double>();
  if (!(out >= range.min && out <= range.max)) {
    at.fail(quoted(in) + " is out of range", expectation("a number", range));
  }
}
void read_value(const json& in, const JsonPath& at, Range range, Time& out) {
  out = Time::nanoseconds(whole(in, at, range, "a whole number of nanoseconds"));
}
void read_value(const json& in, const JsonPath& at, Range range, Bytes& out) {
  out = Bytes{whole(in, at, range, "a whole number of bytes")};
}
void read_value(const json& in, const JsonPath& at, Range, std::string& out) {
  if (!in.is_string()) at.fail(quoted(in) + " is not a string");
  out = in.get<std::string>();
}
void read_value(const json& in, const JsonPath& at, Range,
                std::map<std::string, std::string>& out) {
  require_object(in, at);
  out.clear();
  for (const auto& item : in.items()) {
    read_value(item.value(), at.child(item.key()), {}, out[item.key()]);
  }
}

std::size_t read_name(const json& in, const JsonPath& at, Names names) {
  std::string text;
  read_value(in, at, {}, text);
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    at.fail(quoted(in) + " is not known", fmt::format("use one of {}", fmt::join(names, ", ")));
  }
  return static_cast<std::size_t>(found - names.begin());
}

void require_object(const json& in, const JsonPath& at) {
  if (!in.is_object()) at.fail(quoted(in) + " is not an object");
}
void require_array(const json& in, const JsonPath& at) {
  if (!in.is_array()) at.fail(quoted(in) + " is not a list");
}

ordered_json write_value(bool value) {
  return value;
}
ordered_json write_value(int value) {
  return value;
}
ordered_json write_value(std::int64_t value) {
  return value;
}
ordered_json write_value(double value) {
  if (!std::isfinite(value)) throw RunError("a result is not a finite number: nothing was written");
  return value;
}
ordered_json write_value(Time value) {
  return value.ns();
}
ordered_json write_value(Bytes value) {
  return value.count;
}
ordered_json write_value(const std::string& value) {
  return value;
}
ordered_json write_value(const std::map<std::string, std::string>& value) {
  auto out = ordered_json::object();
  for (const auto& [key, text] : value) out[key] = text;
  return out;
}

const json& JsonReader::child(std::string_view key) {
  known_.push_back(key);
  const auto found = object_.find(key);
  if (found == object_.end()) {
    at_.fail(fmt::format("key \"{}\" is missing", key),
             "the record may come from another version of lockstep");
  }
  return *found;
}

void JsonReader::finish() const {
  if (object_.size() == known_.size()) return;
  for (const auto& item : object_.items()) {
    if (std::find(known_.begin(), known_.end(), item.key()) == known_.end()) {
      at_.child(item.key())
          .fail("unknown key", fmt::format("known are {}", fmt::join(known_, ", ")));
    }
  }
}

void check_header(JsonReader& in, std::string_view kind) {
  const json& format = in.child("format");
  const JsonPath at = in.at().child("format");
  if (!format.is_number_integer()) at.fail(quoted(format) + " is not a format number");
  if (format != kFormat) {
    at.fail(fmt::format("format {} is not supported", quoted(format)),
            fmt::format("this lockstep reads format {}", kFormat));
  }
  const json& found = in.child("kind");
  if (found != kind) {
    in.at().child("kind").fail(fmt::format("this is {}, not \"{}\"", quoted(found), kind),
                               fmt::format("give a file of kind \"{}\"", kind));
  }
}

JsonWriter begin_file(std::string_view kind) {
  JsonWriter out;
  out.field("format", kFormat);
  out.field("kind", std::string(kind));
  return out;
}

}  // namespace lockstep
