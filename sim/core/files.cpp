#include "sim/core/files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

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

/// Holds back the signals by which people end a program: none may come between making a temporary
/// file and naming or removing it. Of this thread only, which is the only one where files are
/// written.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&ending, signal);
    ::pthread_sigmask(SIG_BLOCK, &ending, &before_);
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

[[noreturn]] void cannot_be_written(const std::string& path) {
  throw RunError(fmt::format("{}: cannot be written ({})", path, std::strerror(errno)));
}

/// The file descriptor that "/proc/self/fd/1" or "/dev/fd/1" names; -1 for other paths.
int named_descriptor(std::string_view path) {
  for (const std::string_view folder : {"/proc/self/fd/", "/dev/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const std::string_view digits = path.substr(folder.size());
    int fd = -1;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), fd);
    if (error == std::errc() && end == digits.end()) return fd;
  }
  return -1;
}

/// Pipes, devices and open files have no older content to keep.
void write_through(const std::string& path, std::string_view content) {
  const int open_already = named_descriptor(path);
  Descriptor file(open_already >= 0 ? ::fcntl(open_already, F_DUPFD_CLOEXEC, 0)
                                    : ::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
  if (file.get() < 0 || !write_all(file.get(), content) || !file.close()) cannot_be_written(path);
}

/// Unique among the processes and threads of this machine.
std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}.{}-{}.partial", path, ::getpid(), counter.fetch_add(1));
}

}  // namespace

std::string read_file(const std::string& path, std::size_t limit) {
  const Location at{.file = path};
  // Looked at before it is opened: opening a pipe waits for somebody to write.
  struct stat status{};
  const bool there = ::stat(path.c_str(), &status) == 0;
  if (there && S_ISDIR(status.st_mode))
    throw InputError(at, "", "is a folder", "name a file in it");
  if (there && !S_ISREG(status.st_mode)) {
    throw InputError(at, "", "is a pipe or a device, not a file", "write it to a file first");
  }
  const Descriptor file(there ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : -1);
  if (file.get() < 0) {
    throw InputError(at, "", fmt::format("cannot be read ({})", std::strerror(errno)),
                     "check the path; paths inside a file are relative to it");
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
          "is it the right one?");
    }
  }
}

std::string follow_links(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int kMostLinks = 40;  // as Linux has it
  fs::path target = path;
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code error;
    if (named_descriptor(target.native()) >= 0 || !fs::is_symlink(target, error)) return target;
    const fs::path next = fs::read_symlink(target, error);
    if (error) return target;
    target = (target.parent_path() / next).lexically_normal();
  }
  throw InputError({.file = path}, "", "is a symbolic link that leads round", "name a file");
}

bool is_written_through(const std::string& target) {
  struct stat status{};
  return named_descriptor(target) >= 0 || (::stat(target.c_str(), &status) == 0 &&
                                           !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode));
}

void write_file(const std::string& path, std::string_view content) {
  const std::string target = follow_links(path);
  if (is_written_through(target)) return write_through(target, content);
  const SignalsHeld held;
  const std::string temporary = temporary_name(target);
  constexpr mode_t kMode = 0666;  // less the user's umask
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
  if (file.get() < 0) {
    throw InputError({.file = path}, "",
                     fmt::format("cannot be written ({})", std::strerror(errno)),
                     "the folder must exist and be writable");
  }
  // Short-circuits: errno is that of the first call that failed.
  if (!write_all(file.get(), content) || ::fsync(file.get()) != 0 || !file.close() ||
      std::rename(temporary.c_str(), target.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    errno = error;
    cannot_be_written(path);
  }
}

}  // namespace lockstep
