#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "sim/core/time.h"

namespace lockstep {

/// Chrome counts microseconds; the fraction keeps every picosecond.
inline std::string microseconds(Time time) {
  constexpr std::int64_t kMicrosecond = 1'000'000;
  const std::int64_t ps = std::max<std::int64_t>(0, time.ps());
  return fmt::format("{}.{:06}", ps / kMicrosecond, ps % kMicrosecond);
}

}  // namespace lockstep
