#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace lockstep {

/// As one line that does nothing to a terminal: control characters, which a name of a file or a
/// model may hold, become spaces and question marks.
std::string printable(std::string text);

/// Where in the user's input something is wrong. YAML gives line and column (from 1), JSON a
/// pointer such as "/profiles/0/batch"; zero or empty where unknown.
struct Location {
  std::string file = {};
  int line = 0;
  int column = 0;
  std::string pointer = {};
};

/// "file:line:column:pointer", as far as it is known.
std::string to_string(const Location& location);

/// Bad input: the one exception type for it, caught once in `main`, exit code 2.
/// what() is one line: "file:line:column: key: what is wrong; what would be right".
class InputError : public std::runtime_error {
 public:
  InputError(Location location, std::string key, std::string_view what, std::string_view hint = "");

  /// The same error, its message led by where it came up: for errors that do not know their file.
  InputError within(const std::string& where) const;

  const Location& location() const noexcept { return location_; }
  const std::string& key() const noexcept { return key_; }

 private:
  Location location_;
  std::string key_;
};

/// A real run failed (a rank died, a device is missing); exit code 3.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class ExitCode : int { done = 0, check_failed = 1, bad_input = 2, run_failed = 3 };

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line,
                                   std::string_view message);

}  // namespace lockstep

/// A broken invariant of ours ends the program, in release builds too: a wrong answer is worse.
#define LOCKSTEP_ASSERT(condition, message) \
  ((condition) ? void(0) : ::lockstep::assertion_failed(#condition, __FILE__, __LINE__, message))
