#include "runner/communicators/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "runner/communicators/lost_peers.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

[[noreturn]] void fail(const char* doing) {
  throw RunError(fmt::format("{}: {}", doing, std::strerror(errno)));
}

}  // namespace

void Counter::wait_for(std::uint64_t count, std::string_view what,
                       std::chrono::milliseconds patience) const {
  constexpr int kLooks = 256;  // between two looks at the clock
  const auto end = std::chrono::steady_clock::now() + patience;
  for (int look = 1; count_.load(std::memory_order_acquire) < count; ++look) {
    if (look % kLooks != 0) continue;
    if (std::chrono::steady_clock::now() > end) {
      throw LostPeers(fmt::format("no {} within {} s", what, patience.count() / 1000));
    }
    std::this_thread::yield();  // who is waited for may want this core
  }
}

SharedMemory SharedMemory::create(std::size_t bytes) {
  const int fd = memfd_create("lockstep", MFD_CLOEXEC);
  if (fd < 0) fail("making memory to share");
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    close(fd);
    fail("making memory to share");
  }
  return {fd, fmt::format("/proc/{}/fd/{}", getpid(), fd), bytes};
}

SharedMemory SharedMemory::open(const std::string& path, std::size_t bytes) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) fail("opening memory that another worker shares");
  return {fd, path, bytes};
}

SharedMemory::SharedMemory(int fd, std::string path, std::size_t bytes)
    : fd_(fd), path_(std::move(path)) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) {
    close(fd);
    fail("mapping memory to share");
  }
  bytes_ = {static_cast<std::byte*>(address), bytes};
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      bytes_(std::exchange(other.bytes_, {})) {}

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
  if (fd_ >= 0) close(fd_);
}

}  // namespace lockstep::runner
