#include "cli/output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "sim/core/error.h"

namespace lockstep::cli {
namespace {

std::ostringstream& gathered() {
  static std::ostringstream stream;
  return stream;
}

}  // namespace

std::ostream& output_stream() {
  return gathered();
}

void print(std::string_view text) {
  gathered() << text;
}

void flush_output() {
  const std::string text = gathered().str();
  gathered().str("");
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) != 0) {
    throw RunError(std::string("standard output cannot be written (") + std::strerror(errno) + ")");
  }
}

void report_error(std::string_view message) {
  std::string line = "lockstep: " + std::string(message);
  std::ranges::replace(line, '\n', ' ');
  std::fprintf(stderr, "%s\n", line.c_str());
}

void require_writable(const std::string& path) {
  if (path.empty()) return;
  const std::filesystem::path file(path);
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    throw InputError({path, 0, 0, ""}, "", "is a folder", "name a file in it");
  }
  if (!std::filesystem::is_directory(folder, error)) {
    throw InputError({path, 0, 0, ""}, "", "its folder does not exist",
                     "make it first: mkdir -p " + folder.string());
  }
  if (::access(folder.c_str(), W_OK) != 0) {
    throw InputError({path, 0, 0, ""}, "", "its folder is not writable", "choose another");
  }
}

}  // namespace lockstep::cli
