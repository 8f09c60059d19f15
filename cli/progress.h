#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>

namespace lockstep::cli {

/// While it lives, says on standard error how far some work is: once a second from the first second
/// on, in one line that goes with the object. Nothing where standard error is no terminal.
class Progress {
 public:
  /// "simulating: 2 of `all` `things`, 5 s"
  Progress(std::string doing, std::string things, std::size_t all);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// One more is done; from any thread.
  void advance() { ++done_; }

 private:
  void show(const std::stop_token& stop);

  std::string doing_, things_;
  std::size_t all_;
  std::atomic<std::size_t> done_{0};
  std::jthread thread_;
};

}  // namespace lockstep::cli
