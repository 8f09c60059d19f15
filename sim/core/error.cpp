#include "sim/core/error.h"

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>

namespace lockstep {
namespace {

std::string one_line(const Location& at, const std::string& key, std::string_view what,
                     std::string_view hint) {
  std::string text = at.file;
  if (at.line > 0) text += fmt::format(":{}:{}", at.line, at.column);
  if (!at.pointer.empty()) text += fmt::format(":{}", at.pointer);
  if (!text.empty()) text += ": ";
  if (!key.empty()) text += fmt::format("{}: ", key);
  text += what;
  if (!hint.empty()) text += fmt::format("; {}", hint);
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

}  // namespace

InputError::InputError(Location location, std::string key, std::string_view what,
                       std::string_view hint)
    : std::runtime_error(one_line(location, key, what, hint)),
      location_(std::move(location)),
      key_(std::move(key)) {}

void assertion_failed(const char* condition, const char* file, int line, std::string_view message) {
  fmt::print(stderr, "{}:{}: broken invariant: {} ({})\n", file, line, message, condition);
  std::abort();
}

}  // namespace lockstep
