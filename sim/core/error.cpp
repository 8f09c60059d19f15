#include "sim/core/error.h"

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>

namespace lockstep {

std::string printable(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  return text;
}

std::string to_string(const Location& location) {
  std::string text = location.file;
  if (location.line > 0) text += fmt::format(":{}:{}", location.line, location.column);
  if (!location.pointer.empty()) text += fmt::format(":{}", location.pointer);
  return text;
}

namespace {

std::string one_line(const Location& at, const std::string& key, std::string_view what,
                     std::string_view hint) {
  std::string text = to_string(at);
  if (!text.empty()) text += ": ";
  if (!key.empty()) text += fmt::format("{}: ", key);
  text += what;
  if (!hint.empty()) text += fmt::format("; {}", hint);
  return printable(std::move(text));
}

}  // namespace

InputError::InputError(Location location, std::string key, std::string_view what,
                       std::string_view hint)
    : std::runtime_error(one_line(location, key, what, hint)),
      location_(std::move(location)),
      key_(std::move(key)) {}

InputError InputError::within(const std::string& where) const {
  InputError error(location_, key_, "");
  static_cast<std::runtime_error&>(error) = std::runtime_error(printable(where + ": " + what()));
  return error;
}

void assertion_failed(const char* condition, const char* file, int line, std::string_view message) {
  fmt::print(stderr, "{}:{}: broken invariant: {} ({})\n", file, line, message, condition);
  std::abort();
}

}  // namespace lockstep
