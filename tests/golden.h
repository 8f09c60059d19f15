#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/catch.h"

namespace lockstep {

inline std::string file_text(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// `text` must be what `path` (from the root of the sources) holds; under tests/approve.sh it
/// becomes that.
inline void check_golden(const std::string& path, const std::string& text) {
  const std::string file = std::string(LOCKSTEP_SOURCE_DIR) + "/" + path;
  if (std::getenv("LOCKSTEP_APPROVE") != nullptr) {
    std::ofstream(file, std::ios::binary) << text;
  }
  INFO("differs from " << path << "; if it should, run tests/approve.sh and look at the change");
  const bool same = file_text(file) == text;
  if (!same) std::ofstream(file + ".received", std::ios::binary) << text;
  CHECK(same);
}

}  // namespace lockstep
