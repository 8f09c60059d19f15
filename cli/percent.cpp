#include "cli/percent.h"

#include <fmt/core.h>

#include <charconv>

#include "sim/core/error.h"

namespace lockstep::cli {

std::optional<double> parse_percent(const std::string& flag, const std::string& text) {
  if (text.empty()) return std::nullopt;
  double percent = -1;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, percent);
  if (error != std::errc{} || std::string_view(rest, end) != "%" || !(percent >= 0)) {
    throw InputError({}, flag, fmt::format("\"{}\" is no percentage", text), "write it like 2%");
  }
  return percent / 100;
}

}  // namespace lockstep::cli
