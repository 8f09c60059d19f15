#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sim/core/time.h"
#include "sim/core/units.h"

/// One description of a record serves reading and writing: `describe(io, record)` names every key
/// once, `io` being a JsonReader or a JsonWriter (or a row of a table). A key that the description
/// does not name, and one that it names and the file lacks, is an error.
namespace lockstep {

/// What a number may be, both ends included.
struct Range {
  double min = 0, max = 0;
};
inline constexpr double kLargestCount = 1e9;
inline constexpr double kLongestNs = 3600e9;  // an hour
inline constexpr double kMostBytes = 0x1p50;  // a pebibyte
inline constexpr double kLargestReal = 1e15;
inline constexpr Range kSigned{-kLargestReal, kLargestReal};
inline constexpr Range kAtLeastOne{1, kLargestCount};
/// Of runs: what the simulator answers within minutes, as in scenarios.
inline constexpr Range kWorkers{1, 4096}, kBatch{1, 1e6};

template <class T>
constexpr Range natural_range() {
  if constexpr (std::is_same_v<T, Time>) return {0, kLongestNs};
  if constexpr (std::is_same_v<T, Bytes>) return {0, kMostBytes};
  if constexpr (std::is_same_v<T, int>) return {0, kLargestCount};
  return {0, kLargestReal};
}

/// Where in a file a value stands; turned into text only when something is wrong.
class JsonPath {
 public:
  explicit JsonPath(const std::string& file) : file_(&file) {}
  JsonPath child(std::string_view key) const { return JsonPath(this, key, 0); }
  JsonPath child(std::size_t index) const { return JsonPath(this, {}, index); }
  const std::string& file() const { return *file_; }
  std::string pointer() const;
  [[noreturn]] void fail(std::string_view what, std::string_view hint = "") const;

 private:
  JsonPath(const JsonPath* parent, std::string_view key, std::size_t index)
      : file_(parent->file_), parent_(parent), key_(key), index_(index) {}
  const std::string* file_;
  const JsonPath* parent_ = nullptr;
  std::string_view key_;
  std::size_t index_ = 0;
};

/// Names of an enumeration's values, in order from zero.
using Names = std::span<const std::string_view>;

// Scalars. Readers fail at `at` on a wrong type or a value outside `range`.
void read_value(const nlohmann::json& in, const JsonPath& at, Range range, bool& out);
void read_value(const nlohmann::json& in, const JsonPath& at, Range range, int& out);
void read_value(const nlohmann::json& in, const JsonPath& at, Range range, std::int64_t& out);
void read_value(const nlohmann::json& in, const JsonPath& at, Range range, double& out);
void read_value(const nlohmann::json& in, const JsonPath& at, Range range, Time& out);
void read_value(const nlohmann::json& in, const JsonPath& at, Range range, Bytes& out);
void read_value(const nlohmann::json& in, const JsonPath& at, Range range, std::string& out);
void read_value(const nlohmann::json& in, const JsonPath& at, Range range,
                std::map<std::string, std::string>& out);
std::size_t read_name(const nlohmann::json& in, const JsonPath& at, Names names);
void require_object(const nlohmann::json& in, const JsonPath& at);
void require_array(const nlohmann::json& in, const JsonPath& at);

nlohmann::ordered_json write_value(bool value);
nlohmann::ordered_json write_value(int value);
nlohmann::ordered_json write_value(std::int64_t value);
nlohmann::ordered_json write_value(double value);  ///< RunError where it is not finite
nlohmann::ordered_json write_value(Time value);
nlohmann::ordered_json write_value(Bytes value);
nlohmann::ordered_json write_value(const std::string& value);
nlohmann::ordered_json write_value(const std::map<std::string, std::string>& value);

template <class T>
inline constexpr bool kIsScalar =
    std::is_arithmetic_v<T> || std::is_same_v<T, Time> || std::is_same_v<T, Bytes> ||
    std::is_same_v<T, std::string> || std::is_same_v<T, std::map<std::string, std::string>>;

/// The record as `describe` sees it: const when it is written.
template <class Io, class T>
using Described = std::conditional_t<Io::kReading, T, const T>;

class JsonReader {
 public:
  static constexpr bool kReading = true;
  JsonReader(const nlohmann::json& object, const JsonPath& at) : object_(object), at_(at) {
    require_object(object, at);
  }

  const JsonPath& at() const { return at_; }

  template <class T>
  void field(std::string_view key, T& value, Range range = natural_range<T>()) {
    const nlohmann::json& in = child(key);
    const JsonPath at = at_.child(key);
    if constexpr (kIsScalar<T>) {
      read_value(in, at, range, value);
    } else {
      read_record(in, at, value);
    }
  }

  template <class T>
  void field(std::string_view key, std::vector<T>& values) {
    const nlohmann::json& in = child(key);
    const JsonPath at = at_.child(key);
    require_array(in, at);
    values.clear();
    values.resize(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      if constexpr (kIsScalar<T>) {
        read_value(in[i], at.child(i), natural_range<T>(), values[i]);
      } else {
        read_record(in[i], at.child(i), values[i]);
      }
    }
  }

  /// A list of objects whose fields `describe_item(io, item)` names.
  template <class T, class F>
  void list(std::string_view key, std::vector<T>& values, F describe_item) {
    const nlohmann::json& in = child(key);
    const JsonPath at = at_.child(key);
    require_array(in, at);
    values.clear();
    values.resize(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      const JsonPath item = at.child(i);
      JsonReader inner(in[i], item);
      describe_item(inner, values[i]);
      inner.finish();
    }
  }

  template <class T>
  void field(std::string_view key, std::optional<T>& value) {
    value.reset();
    if (!child(key).is_null()) field(key, value.emplace());
  }

  template <class E>
  void name(std::string_view key, E& value, Names names) {
    value = static_cast<E>(read_name(child(key), at_.child(key), names));
  }

  /// An object under `key` whose fields `describe_fields(io)` names.
  template <class F>
  void group(std::string_view key, F describe_fields) {
    const JsonPath at = at_.child(key);
    JsonReader inner(child(key), at);
    describe_fields(inner);
    inner.finish();
  }

  /// The value under `key`, required, for readers of an unusual shape.
  const nlohmann::json& child(std::string_view key);
  bool has(std::string_view key) const { return object_.contains(key); }
  /// Throws if the object holds a key that was not asked for.
  void finish() const;

  template <class T>
  static void read_record(const nlohmann::json& in, const JsonPath& at, T& value) {
    JsonReader inner(in, at);
    describe(inner, value);
    inner.finish();
  }

 private:
  const nlohmann::json& object_;
  const JsonPath& at_;
  std::vector<std::string_view> known_;
};

class JsonWriter {
 public:
  static constexpr bool kReading = false;

  template <class T>
  void field(std::string_view key, const T& value, Range = {}) {
    if constexpr (kIsScalar<T>) {
      put(key, write_value(value));
    } else {
      put(key, record(value));
    }
  }
  template <class T>
  void field(std::string_view key, const std::vector<T>& values) {
    auto list = nlohmann::ordered_json::array();
    for (const T& value : values) {
      if constexpr (kIsScalar<T>) {
        list.push_back(write_value(value));
      } else {
        list.push_back(record(value));
      }
    }
    put(key, std::move(list));
  }
  template <class T, class F>
  void list(std::string_view key, const std::vector<T>& values, F describe_item) {
    auto list = nlohmann::ordered_json::array();
    for (const T& value : values) {
      JsonWriter inner;
      describe_item(inner, value);
      list.push_back(inner.take());
    }
    put(key, std::move(list));
  }
  template <class T>
  void field(std::string_view key, const std::optional<T>& value) {
    if (value) {
      field(key, *value);
    } else {
      put(key, nlohmann::ordered_json(nullptr));
    }
  }
  template <class E>
  void name(std::string_view key, const E& value, Names names) {
    put(key, std::string(names[static_cast<std::size_t>(value)]));
  }
  template <class F>
  void group(std::string_view key, F describe_fields) {
    JsonWriter inner;
    describe_fields(inner);
    put(key, inner.take());
  }

  void put(std::string_view key, nlohmann::ordered_json value) {
    object_[std::string(key)] = std::move(value);
  }
  nlohmann::ordered_json take() { return std::move(object_); }

  template <class T>
  static nlohmann::ordered_json record(const T& value) {
    JsonWriter inner;
    describe(inner, value);
    return inner.take();
  }

 private:
  nlohmann::ordered_json object_ = nlohmann::ordered_json::object();
};

/// Reads and writes `format` and `kind`, the first two keys of every file.
void check_header(JsonReader& in, std::string_view kind);
JsonWriter begin_file(std::string_view kind);

}  // namespace lockstep
