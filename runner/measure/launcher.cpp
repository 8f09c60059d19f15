#include "runner/measure/launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "runner/measure/progress.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr const char* kLoopback = "127.0.0.1";

volatile std::sig_atomic_t interrupted = 0;
void on_signal(int) {
  interrupted = 1;
}

/// Notes Ctrl-C and termination requests while it lives.
class SignalGuard {
 public:
  SignalGuard() {
    struct sigaction action{};
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, &old_interrupt_);
    sigaction(SIGTERM, &action, &old_terminate_);
  }
  ~SignalGuard() {
    sigaction(SIGINT, &old_interrupt_, nullptr);
    sigaction(SIGTERM, &old_terminate_, nullptr);
  }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  struct sigaction old_interrupt_{};
  struct sigaction old_terminate_{};
};

struct Child {
  int rank = 0;
  pid_t pid = -1;
  int progress = -1;   ///< read end
  std::string unread;  ///< of a line that is not complete
  std::string run;     ///< it says it is at
  std::int64_t beats = 0;
  bool idle = false;          ///< it says that it waits for others
  std::string failure;        ///< as it says itself
  bool lost = false;          ///< it says that it lost others
  std::optional<int> status;  ///< of waitpid, once it has ended
  std::optional<Clock::time_point> stopped_since;
};

std::vector<std::string> environment_of(int rank, int workers, int port, int listen_fd,
                                        int progress_fd) {
  std::map<std::string, std::string> set{
      {"RANK", std::to_string(rank)},
      {"WORLD_SIZE", std::to_string(workers)},
      {"LOCAL_RANK", std::to_string(rank)},
      {"LOCAL_WORLD_SIZE", std::to_string(workers)},
      {"MASTER_ADDR", kLoopback},
      {"MASTER_PORT", std::to_string(port)},
      {"LOCKSTEP_PROGRESS_FD", std::to_string(progress_fd)},
  };
  // Threads that spin while they wait would take the cores from other workers.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) set["OMP_WAIT_POLICY"] = "passive";
  if (rank == 0) set["LOCKSTEP_LISTEN_FD"] = std::to_string(listen_fd);
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!set.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : set) result.push_back(fmt::format("{}={}", name, value));
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

Child start(const Launch& launch, int rank, int port, int listen_fd) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw RunError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  std::vector<std::string> words = launch.arguments;
  words.insert(words.begin(), "lockstep-measure");
  auto variables = environment_of(rank, launch.workers, port, listen_fd, ends[1]);
  auto argument_pointers = pointers(words);
  auto variable_pointers = pointers(variables);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw RunError(fmt::format("cannot start a worker: {}", std::strerror(errno)));
  if (pid == 0) {
    // Ctrl-C reaches the launcher alone; the kernel ends a worker whose launcher is gone.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    fcntl(ends[1], F_SETFD, 0);
    if (rank == 0) fcntl(listen_fd, F_SETFD, 0);
    execve("/proc/self/exe", argument_pointers.data(), variable_pointers.data());
    _exit(127);
  }
  close(ends[1]);
  Child child;
  child.rank = rank;
  child.pid = pid;
  child.progress = ends[0];
  fcntl(child.progress, F_SETFL, O_NONBLOCK);
  return child;
}

/// Whether it said anything.
bool read_progress(Child& child) {
  bool moved = false;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(child.progress, buffer, sizeof buffer)) > 0;) {
    moved = true;
    child.unread.append(buffer, static_cast<std::size_t>(got));
  }
  for (std::size_t end = 0; (end = child.unread.find('\n')) != std::string::npos;) {
    const std::string line = child.unread.substr(0, end);
    child.unread.erase(0, end + 1);
    child.idle = line == "~";
    if (child.idle) continue;
    if (line.starts_with('!') || line.starts_with('?')) {
      child.lost = line.front() == '?';
      child.failure = line.substr(1);
      continue;
    }
    const auto bar = line.find('|');
    if (bar == std::string::npos) {
      ++child.beats;
      continue;
    }
    child.run = line.substr(0, bar);
    if (child.rank == 0) show_progress(line.substr(bar + 1));
  }
  return moved;
}

/// Of all threads of a process, one letter each, as in ps.
std::string states_of(pid_t pid) {
  std::string states;
  std::error_code error;
  const std::filesystem::directory_iterator threads(fmt::format("/proc/{}/task", pid), error);
  if (error) return states;
  for (const auto& thread : threads) {
    std::ifstream file(thread.path() / "stat");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const auto end = text.rfind(')');
    if (end != std::string::npos && end + 2 < text.size()) states += text[end + 2];
  }
  return states;
}

class Workers {
 public:
  explicit Workers(const Launch& launch) : launch_(launch) {
    int port = 0;
    const int listen_fd = listen_on(kLoopback, port);
    fcntl(listen_fd, F_SETFD, FD_CLOEXEC);
    for (int rank = 0; rank < launch.workers; ++rank) {
      children_.push_back(start(launch, rank, port, listen_fd));
    }
    close(listen_fd);
  }

  ~Workers() {
    stop();
    for (const Child& child : children_) close(child.progress);
  }

  LaunchResult wait() {
    const std::chrono::seconds silence(launch_.silence_seconds);
    auto last_move = Clock::now();
    auto last_word = last_move;
    auto last_look = last_move;
    for (;;) {
      const bool word = poll_progress();
      reap();
      const auto now = Clock::now();
      if (word) last_move = last_word = now;
      if (interrupted != 0) return finish(ended(true, -1));
      if (std::ranges::any_of(children_, failed)) return finish(culprit());
      if (std::ranges::all_of(children_, [](const Child& c) { return c.status.has_value(); })) {
        return {};
      }
      if (now - last_look < 1s) continue;
      // A launcher that was stopped itself, by Ctrl-Z, knows nothing of the time since.
      if (now - last_look > 5s) last_move = last_word = now;
      last_look = now;
      if (look_at_states(now) && launch_.busy_is_alive) last_move = now;
      if (const Child* child = stopped_for(now, silence)) return finish(hung(*child, silence));
      // A step may take longer than the silence, and a crowded machine may give no core to it. Who
      // computes in silence ten times as long hangs all the same.
      if (now - last_move > silence) return finish(hung(least_far(), silence));
      if (now - last_word > 10 * silence) return finish(hung(least_far(), 10 * silence));
    }
  }

 private:
  static LaunchResult ended(bool interrupted_by_user, int rank, const std::string& run = "") {
    LaunchResult result;
    result.interrupted = interrupted_by_user;
    result.rank = rank;
    result.run = run;
    return result;
  }

  static bool failed(const Child& child) { return child.status && *child.status != 0; }

  bool poll_progress() {
    std::vector<pollfd> files;
    for (const Child& child : children_) {
      if (!child.status) files.push_back({.fd = child.progress, .events = POLLIN, .revents = 0});
    }
    poll(files.data(), files.size(), 100);
    bool moved = false;
    for (Child& child : children_) moved = read_progress(child) || moved;
    return moved;
  }

  void reap() {
    for (Child& child : children_) {
      int status = 0;
      if (!child.status && waitpid(child.pid, &status, WNOHANG) == child.pid) child.status = status;
    }
  }

  /// The death of one makes others fail, by losing it: who was killed comes first, then who failed
  /// by itself. Losing it may take less time than saying why.
  LaunchResult culprit() {
    const auto find = [this](auto what) { return std::ranges::find_if(children_, what); };
    auto found = children_.end();
    for (int i = 0; i < 10 && found == children_.end(); ++i) {
      std::this_thread::sleep_for(300ms);
      reap();
      poll_progress();
      found = find([](const Child& c) { return c.status && WIFSIGNALED(*c.status); });
      if (found == children_.end()) {
        found = find([](const Child& c) { return failed(c) && !c.lost; });
      }
    }
    if (found == children_.end()) found = find(failed);
    const Child& child = *found;
    LaunchResult result = ended(false, child.rank, child.run);
    if (WIFSIGNALED(*child.status)) {
      const int signal = WTERMSIG(*child.status);
      result.what = fmt::format("was killed by signal {} ({})", signal, strsignal(signal));
      return result;
    }
    result.exit_code = WEXITSTATUS(*child.status);
    result.says = child.failure;
    result.what = child.failure.empty() ? fmt::format("ended with exit code {}", result.exit_code)
                                        : "failed: " + child.failure;
    return result;
  }

  /// Notes who is stopped; whether anybody else runs, or would if a core were free.
  bool look_at_states(Clock::time_point now) {
    bool runs = false;
    for (Child& child : children_) {
      if (child.status) continue;
      const std::string states = states_of(child.pid);
      const bool stopped = !states.empty() && states.find_first_not_of("Tt") == std::string::npos;
      if (!stopped) {
        child.stopped_since.reset();
      } else if (!child.stopped_since) {
        child.stopped_since = now;
      }
      runs = runs || states.find_first_of("RD") != std::string::npos;
    }
    return runs;
  }

  const Child* stopped_for(Clock::time_point now, Clock::duration time) const {
    const auto found = std::ranges::find_if(children_, [&](const Child& c) {
      return !c.status && c.stopped_since && now - *c.stopped_since >= time;
    });
    return found == children_.end() ? nullptr : &*found;
  }

  /// Everybody waits for the one that is stopped or hangs, and has come further.
  const Child& least_far() const {
    return *std::ranges::min_element(children_, {}, [](const Child& c) {
      return std::tuple(!c.stopped_since.has_value(), c.idle, c.beats);
    });
  }

  LaunchResult hung(const Child& child, std::chrono::seconds time) {
    LaunchResult result = ended(false, child.rank, child.run);
    result.what = fmt::format("has not moved for {} s{}", time.count(),
                              child.stopped_since ? " (it is stopped)" : "");
    return result;
  }

  LaunchResult finish(LaunchResult result) {
    stop();
    return result;
  }

  void stop() {
    for (const Child& child : children_) {
      if (!child.status) kill(child.pid, SIGKILL);
    }
    for (Child& child : children_) {
      int status = 0;
      if (!child.status && waitpid(child.pid, &status, 0) == child.pid) child.status = status;
    }
    clear_progress();
  }

  Launch launch_;
  std::vector<Child> children_;
};

}  // namespace

LaunchResult launch_workers(const Launch& launch) {
  const SignalGuard signals;
  interrupted = 0;
  return Workers(launch).wait();
}

}  // namespace lockstep::runner
