#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::runner {

/// Counts up, seen by several processes; alone on its cache line.
class alignas(64) Counter {
 public:
  /// What was written before is seen by who sees the count.
  void add_one() { count_.fetch_add(1, std::memory_order_release); }
  /// Waits, awake, until it is at least `count`. LostPeers where that takes longer than `patience`;
  /// `what` says what did not come.
  void wait_for(std::uint64_t count, std::string_view what,
                std::chrono::milliseconds patience) const;

 private:
  std::atomic<std::uint64_t> count_ = 0;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);  // else no two processes share it

/// Memory that processes of one host share, zero at first; a page that nobody touches takes none.
class SharedMemory {
 public:
  /// RunError with the reason where there is none.
  static SharedMemory create(std::size_t bytes);
  /// The same memory by the path that its maker tells, while that lives.
  static SharedMemory open(const std::string& path, std::size_t bytes);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;

  const std::string& path() const { return path_; }
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  SharedMemory(int fd, std::string path, std::size_t bytes);

  int fd_;
  std::string path_;
  std::span<std::byte> bytes_;
};

}  // namespace lockstep::runner
