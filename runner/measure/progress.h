#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "sim/core/time.h"

namespace lockstep::runner {

/// Tells whoever watches that a worker is alive and what it is doing: the launcher, through a pipe;
/// else the terminal, by rank 0.
class Progress {
 public:
  /// `fd`: the launcher's pipe, -1 without a launcher; `talk`: this worker may print.
  Progress(int fd, bool talk);
  /// A step was done.
  void beat();
  /// It has nothing to do until others ask for something: should all be silent, it is not to blame.
  void idle();
  /// `run` is the id of the run under way, or empty.
  void say(const std::string& run, const std::string& what);
  /// What is said from here on ends in the time left.
  void expect(Time left);
  /// What is said while hushed is a beat only.
  void hush(bool hushed) { hushed_ = hushed; }
  std::int64_t beats() const { return beats_; }

 private:
  int fd_;
  bool talk_;
  bool hushed_ = false;
  std::atomic<std::int64_t> beats_ = 0;
  std::optional<std::chrono::steady_clock::time_point> end_;
};

/// The launcher's pipe, for a worker that it started; else -1.
int progress_fd();

/// What a worker that fails tells its launcher, in one line: whether it `lost` others, or failed by
/// itself.
void report_failure(int fd, bool lost, const std::string& what);

/// Shows one changing line where stderr is a terminal, nothing elsewhere.
void show_progress(const std::string& line);
void clear_progress();

}  // namespace lockstep::runner
