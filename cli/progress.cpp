#include "cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr const char* kClearLine = "\r\x1b[K";

}  // namespace

Progress::Progress(std::string doing, std::string things, std::size_t all)
    : doing_(std::move(doing)), things_(std::move(things)), all_(all) {
  if (::isatty(STDERR_FILENO) == 0) return;
  thread_ = std::jthread([this](const std::stop_token& stop) { show(stop); });
}

Progress::~Progress() = default;

void Progress::show(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock(mutex);
  int seconds = 0;
  while (
      !woken.wait_for(lock, stop, std::chrono::seconds(1), [&] { return stop.stop_requested(); })) {
    fmt::print(stderr, "{}{}: {} of {} {}, {} s", kClearLine, doing_, done_.load(), all_, things_,
               ++seconds);
    std::fflush(stderr);
  }
  if (seconds > 0) fmt::print(stderr, "{}", kClearLine);
  std::fflush(stderr);
}

}  // namespace lockstep::cli
