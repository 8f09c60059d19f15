#include "runner/measure/progress.h"

#include <unistd.h>

#include <cstdio>

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
  if (fd_ >= 0) write_all(fd_, ".\n");
}

void Progress::say(const std::string& run, const std::string& what) {
  if (fd_ >= 0) {
    write_all(fd_, run + "|" + what + "\n");
  } else if (talk_) {
    show_progress(what);
  }
}

void show_progress(const std::string& line) {
  if (isatty(STDERR_FILENO)) std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
}

void clear_progress() {
  show_progress("");
}

}  // namespace lockstep::runner
