#include "runner/measure/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace lockstep::runner {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kBeat = 1s;
constexpr auto kShortPatience = 6s;  // of one who has lost others already
constexpr auto kAgreeing = 4s;       // from the first suspicion until all have said it
constexpr const char* kDone = "done";
constexpr const char* kAlive = "alive";
constexpr const char* kVerdict = "watch/verdict";

std::vector<std::uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

/// What is known of one worker.
struct Seen {
  std::string value;
  Clock::time_point since = Clock::now();
};

}  // namespace

/// Two threads: one talks to the store, which may block; the other judges by the clock.
struct Watch::State {
  State(const WorkerEnvironment& where, std::chrono::seconds how_long, GiveUp what)
      : environment(where),
        patience(std::max(how_long - kAgreeing, how_long * 2 / 3)),
        give_up(std::move(what)) {
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(where.master_port);
    options.isServer = false;
    options.waitWorkers = false;
    options.timeout = how_long;
    store = c10::make_intrusive<c10d::TCPStore>(where.master_address, options);
    seen.resize(static_cast<std::size_t>(where.world_size));
  }

  static std::string key(int rank) { return fmt::format("watch/{}", rank); }

  void tell(const std::string& how) {
    store->set(key(environment.rank), bytes_of(fmt::format("{} {}", ++number, how)));
  }

  std::string ask(const std::string& name) {
    const std::vector<std::uint8_t> bytes = store->get(name);
    return {bytes.begin(), bytes.end()};
  }

  template <class F>
  auto locked(F what) {
    const std::lock_guard lock(mutex);
    return what();
  }

  /// One round of telling and asking; throws where the store is gone.
  void round() {
    tell(kAlive);
    if (const std::string mine = locked([this] { return verdict; }); !mine.empty()) {
      store->set(kVerdict, bytes_of(mine));
    }
    for (int rank = 0; rank < environment.world_size; ++rank) {
      const std::string value = ask(key(rank));
      locked([&] {
        Seen& one = seen[static_cast<std::size_t>(rank)];
        if (value != one.value) one = {.value = value, .since = Clock::now()};
      });
    }
    const std::string theirs = store->check({kVerdict}) ? ask(kVerdict) : "";
    locked([&] {
      answered = Clock::now();
      if (!theirs.empty()) verdict = theirs;
    });
  }

  void talk() {
    while (!pause(kBeat)) {
      try {
        round();
      } catch (const std::exception&) {
        continue;  // the store's silence is judged like a worker's
      }
    }
  }

  /// Whom all wait for; empty while all are well.
  std::string culprit(Clock::duration limit) {
    const std::lock_guard lock(mutex);
    if (!verdict.empty()) return verdict;
    const auto now = Clock::now();
    const auto silent = [&](int rank, Clock::duration time) {
      return fmt::format("rank {} has not answered for {} s: killed, stopped or cut off", rank,
                         std::chrono::duration_cast<std::chrono::seconds>(time).count());
    };
    for (int rank = 0; rank < environment.world_size; ++rank) {
      const Seen& one = seen[static_cast<std::size_t>(rank)];
      const std::string how = one.value.substr(std::min(one.value.size(), one.value.find(' ') + 1));
      if (rank == environment.rank || how == kDone) continue;
      if (!one.value.empty() && how != kAlive) return fmt::format("rank {} failed: {}", rank, how);
      // Who is seen only through the store is not silent while the store is.
      if (now - answered < kShortPatience / 2 && now - one.since > limit) {
        return silent(rank, now - one.since);
      }
    }
    if (now - answered <= limit || environment.rank == 0) return "";
    return torchrun_serves_store() ? "torchrun, which serves the rendezvous, does not answer"
                                   : silent(0, now - answered);
  }

  /// The first verdict is everybody's: it goes through the store, for as long as that is there.
  void judge() {
    auto last = Clock::now();
    while (!pause(kBeat / 2)) {
      const auto now = Clock::now();
      if (now - last > kShortPatience / 2) forgive();  // this process itself stood still
      last = now;
      const std::string why = culprit(suspects ? std::min<Clock::duration>(patience, kShortPatience)
                                               : Clock::duration(patience));
      if (why.empty()) continue;
      locked([&] { verdict = verdict.empty() ? why : verdict; });
      std::this_thread::sleep_for(environment.rank == 0 ? 3 * kBeat : 2 * kBeat);
      return give_up(locked([this] { return verdict; }));
    }
  }

  void forgive() {
    const std::lock_guard lock(mutex);
    answered = Clock::now();
    for (Seen& one : seen) one.since = answered;
  }

  /// Whether it is time to stop.
  bool pause(Clock::duration time) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, time, [this] { return stopping; });
  }

  WorkerEnvironment environment;
  std::chrono::seconds patience;
  GiveUp give_up;
  c10::intrusive_ptr<c10d::TCPStore> store;
  std::atomic<std::int64_t> number = 0;
  std::atomic<bool> suspects = false;
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;
  std::vector<Seen> seen;
  std::string verdict;  ///< empty: none yet
  Clock::time_point answered = Clock::now();
  std::jthread talker, judger;
};

Watch::Watch(const WorkerEnvironment& environment, std::chrono::seconds patience, GiveUp give_up)
    : state_(std::make_unique<State>(environment, patience, std::move(give_up))) {
  state_->tell(kAlive);
  state_->talker = std::jthread([this] { state_->talk(); });
  state_->judger = std::jthread([this] { state_->judge(); });
}

Watch::~Watch() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  state_->talker.join();
  state_->judger.join();
  try {
    state_->tell(kDone);
  } catch (const std::exception&) {
    return;  // who served the store was done before
  }
}

void Watch::find_out() {
  state_->suspects = true;
  std::this_thread::sleep_for(kShortPatience + 4 * kBeat);
}

void Watch::fail(const std::string& why) {
  try {
    state_->tell(why.substr(0, why.find('\n')));
    if (state_->environment.rank == 0) std::this_thread::sleep_for(3 * kBeat);
  } catch (const std::exception&) {
    return;  // then they find it out by its silence
  }
}

}  // namespace lockstep::runner
