#pragma once

// Catch2 2.13 (Debian 12) and 3 (newer) under one include. Tests use the macros that both know and,
// without a namespace, the names below; nothing else of Catch.
#if LOCKSTEP_CATCH2_MAJOR < 3

#include <catch2/catch.hpp>

using Catch::Detail::Approx;
using Catch::Matchers::Contains;

#else

#include <catch2/catch_all.hpp>
#include <string>

using Catch::Approx;

inline auto Contains(const std::string& text) {
  return Catch::Matchers::ContainsSubstring(text);
}

#endif

using Catch::Matchers::EndsWith;
using Catch::Matchers::Message;
using Catch::Matchers::StartsWith;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
