#include "runner/measure/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "runner/measure/estimate.h"

namespace lockstep::runner {

namespace {

/// The launcher notices by itself when a worker's pipe is gone, and the other way round.
void write_all(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = write(fd, text.data() + done, text.size() - done);
    if (wrote <= 0) return;
    done += static_cast<std::size_t>(wrote);
  }
}

}  // namespace

Progress::Progress(int fd, bool talk) : fd_(fd), talk_(talk) {}

void Progress::beat() {
  ++beats_;
  if (fd_ >= 0) write_all(fd_, ".\n");
}

void Progress::idle() {
  if (fd_ >= 0) write_all(fd_, "~\n");
}

void Progress::say(const std::string& run, const std::string& what) {
  if (hushed_) {
    beat();
    return;
  }
  std::string line = what;
  if (end_) {
    const std::chrono::duration<double> left = *end_ - std::chrono::steady_clock::now();
    line += left.count() > 1 ? ", " + about(Time::from_seconds(left.count())) + " left"
                             : ", nearly done";
  }
  if (fd_ >= 0) {
    write_all(fd_, run + "|" + line + "\n");
  } else if (talk_) {
    show_progress(line);
  }
}

void Progress::expect(Time left) {
  end_ = std::chrono::steady_clock::now() + std::chrono::nanoseconds(left.ns());
}

int progress_fd() {
  const char* fd = std::getenv("LOCKSTEP_PROGRESS_FD");
  return fd != nullptr ? std::atoi(fd) : -1;
}

void report_failure(int fd, bool lost, const std::string& what) {
  std::string line = (lost ? "?" : "!") + what.substr(0, what.find('\n'));
  std::ranges::replace(line, '|', '/');
  write_all(fd, line + "\n");
}

void show_progress(const std::string& line) {
  if (isatty(STDERR_FILENO)) std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
}

void clear_progress() {
  show_progress("");
}

}  // namespace lockstep::runner
