#pragma once

#include <string>

namespace lockstep::runner {

/// Tells whoever watches that a worker is alive and what it is doing: the launcher, through a pipe;
/// else the terminal, by rank 0.
class Progress {
 public:
  /// `fd`: the launcher's pipe, -1 without a launcher; `talk`: this worker may print.
  Progress(int fd, bool talk);
  /// A step was done.
  void beat();
  /// `run` is the id of the run under way, or empty.
  void say(const std::string& run, const std::string& what);

 private:
  int fd_;
  bool talk_;
};

/// Shows one changing line where stderr is a terminal, nothing elsewhere.
void show_progress(const std::string& line);
void clear_progress();

}  // namespace lockstep::runner
