#include "runner/measure/precision.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "sim/core/error.h"

namespace lockstep::runner {

std::vector<std::string> precision_names() {
  return {"fp32", "tf32", "bf16"};
}

std::string to_string(Precision precision) {
  return precision_names().at(static_cast<std::size_t>(precision));
}

Precision parse_precision(const std::string& name) {
  const std::vector<std::string> names = precision_names();
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<Precision>(found - names.begin());
  throw InputError({}, "precision", fmt::format("there is no precision \"{}\"", name),
                   fmt::format("one of {}", fmt::join(names, ", ")));
}

std::string precision_ending(Precision precision) {
  return precision == Precision::fp32 ? "" : "-" + to_string(precision);
}

}  // namespace lockstep::runner
