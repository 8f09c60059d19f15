#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/records/temporary_folder.h"

namespace lockstep::testing {

using Variables = std::vector<std::pair<std::string, std::string>>;

/// lockstep-measure as its users start it. What still runs at the end is killed.
class MeasureProcess {
 public:
  /// What it prints goes to `name`.out and .err in the folder, or stdout to `out`.
  MeasureProcess(const TemporaryFolder& folder, std::vector<std::string> arguments,
                 const Variables& variables = {}, const std::string& name = "process",
                 const std::string& out = "")
      : out_(out.empty() ? folder.file(name + ".out") : out), err_(folder.file(name + ".err")) {
    arguments.insert(arguments.begin(), LOCKSTEP_MEASURE_BINARY);
    pid_ = fork();
    if (pid_ != 0) return;
    dup2(open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
    dup2(open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    for (const auto& [variable, value] : variables) setenv(variable.c_str(), value.c_str(), 1);
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    execv(words[0], words.data());
    _exit(127);
  }
  ~MeasureProcess() {
    if (ended_) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  MeasureProcess(const MeasureProcess&) = delete;
  MeasureProcess& operator=(const MeasureProcess&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const { kill(pid_, number); }
  /// Waits for its end; -1: by a signal.
  int exit_code() {
    int status = 0;
    waitpid(pid_, &status, 0);
    ended_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string output() const { return slurp(out_); }
  std::string errors() const { return slurp(err_); }
  bool one_error_line() const {
    const std::string text = errors();
    return text.starts_with("lockstep-measure: ") && std::ranges::count(text, '\n') == 1;
  }

 private:
  std::string out_, err_;
  pid_t pid_ = -1;
  bool ended_ = false;
};

/// Waits until `what` gives something; fails the test where that takes forever.
template <class F>
auto wait_for(const std::string& name, F what) {
  using namespace std::chrono_literals;
  for (int i = 0; i < 2400; ++i) {
    if (auto found = what()) return found;
    std::this_thread::sleep_for(50ms);
  }
  FAIL("waited in vain for " << name);
  return decltype(what()){};
}

/// The process of that rank among the children of `launcher`.
inline std::optional<pid_t> worker_of(pid_t launcher, int rank) {
  const std::string base = "/proc/" + std::to_string(launcher);
  std::istringstream children(slurp(base + "/task/" + std::to_string(launcher) + "/children"));
  for (pid_t child = 0; children >> child;) {
    const std::string variables = slurp("/proc/" + std::to_string(child) + "/environ");
    const std::string wanted = "RANK=" + std::to_string(rank);
    if (variables.find('\0' + wanted + '\0') != std::string::npos ||
        variables.starts_with(wanted + '\0')) {
      return child;
    }
  }
  return std::nullopt;
}

inline pid_t wait_for_worker(pid_t launcher, int rank) {
  return *wait_for("a worker", [&] { return worker_of(launcher, rank); });
}

}  // namespace lockstep::testing
