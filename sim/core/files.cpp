#include "sim/core/files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sim/core/error.h"
#include "sim/core/units.h"

namespace lockstep {
namespace {

/// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  /// Closing can be the moment when a network file system reports a full disk.
  bool close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd) == 0;
  }

 private:
  int fd_;
};

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// Unique among the processes and threads of this machine.
std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}.{}-{}.partial", path, ::getpid(), counter.fetch_add(1));
}

}  // namespace

std::string read_file(const std::string& path, std::size_t limit) {
  const Location at{.file = path};
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    throw InputError(at, "", fmt::format("cannot be read ({})", std::strerror(errno)),
                     "check the path; paths inside a file are relative to it");
  }
  struct stat status{};
  if (::fstat(file.get(), &status) == 0 && S_ISDIR(status.st_mode)) {
    throw InputError(at, "", "is a folder", "name a file in it");
  }
  std::string content;
  std::array<char, 1 << 16> block;
  for (;;) {
    const ssize_t got = ::read(file.get(), block.data(), block.size());
    if (got == 0) return content;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw InputError(at, "", fmt::format("cannot be read ({})", std::strerror(errno)));
    }
    content.append(block.data(), static_cast<std::size_t>(got));
    if (content.size() > limit) {
      throw InputError(
          at, "",
          fmt::format("is larger than {}", to_string(Bytes{static_cast<std::int64_t>(limit)})),
          "no file of lockstep is");
    }
  }
}

void write_file(const std::string& path, std::string_view content) {
  const std::string temporary = temporary_name(path);
  constexpr mode_t kMode = 0666;  // less the user's umask
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
  if (file.get() < 0) {
    throw InputError({.file = path}, "",
                     fmt::format("cannot be written ({})", std::strerror(errno)),
                     "the folder must exist and be writable");
  }
  // Short-circuits: errno is that of the first call that failed.
  if (!write_all(file.get(), content) || ::fsync(file.get()) != 0 || !file.close() ||
      std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    throw RunError(fmt::format("{}: cannot be written ({})", path, std::strerror(error)));
  }
}

}  // namespace lockstep
