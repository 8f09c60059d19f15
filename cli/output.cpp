#include "cli/output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "sim/core/error.h"
#include "sim/core/files.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

void require_writable(const std::string& path, const fs::path& target) {
  const fs::path folder = target.has_parent_path() ? target.parent_path() : ".";
  std::error_code error;
  if (fs::is_directory(target, error)) {
    throw InputError({path, 0, 0, ""}, "", "is a folder", "name a file in it");
  }
  if (is_written_through(target)) return;
  if (!fs::is_directory(folder, error)) {
    throw InputError({path, 0, 0, ""}, "", "its folder does not exist",
                     "make it first: mkdir -p " + folder.string());
  }
  if (::access(folder.c_str(), W_OK) != 0) {
    throw InputError({path, 0, 0, ""}, "", "its folder is not writable", "choose another");
  }
}

/// Of files that need not exist. A pipe or a device may be named more than once.
bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (is_written_through(a)) return false;
  if (fs::equivalent(a, b, error)) return true;
  const fs::path whole_a = fs::weakly_canonical(a, error);
  return !error && whole_a == fs::weakly_canonical(b, error) && !error;
}

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
  std::string text = gathered().str();
  // What files hold must not steer the terminal.
  std::ranges::replace_if(
      text,
      [](char c) { return (static_cast<unsigned char>(c) < ' ' && c != '\n') || c == '\x7f'; },
      '?');
  gathered().str("");
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) != 0) {
    throw RunError(std::string("standard output cannot be written (") + std::strerror(errno) + ")");
  }
}

void report_error(std::string_view message) {
  std::fprintf(stderr, "lockstep: %s\n", printable(std::string(message)).c_str());
}

void check_files(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    if (output->empty()) continue;
    const fs::path target = follow_links(*output);
    require_writable(*output, target);
    for (const std::string& input : inputs) {
      if (!is_same_file(target, input)) continue;
      throw InputError({*output, 0, 0, ""}, "", "is read by this command, too",
                       "write to another file");
    }
    for (auto earlier = outputs.begin(); earlier != output; ++earlier) {
      if (earlier->empty() || !is_same_file(target, follow_links(*earlier))) continue;
      throw InputError({*output, 0, 0, ""}, "", "is to be written twice",
                       "give each output a file of its own");
    }
  }
}

}  // namespace lockstep::cli
