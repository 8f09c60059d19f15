#include "runner/measure/pace.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "runner/measure/clock.h"

namespace lockstep::runner {

namespace {

constexpr Moment kSecond = 1'000'000'000;

/// The kernel may wake a thread up to its timer slack late, by default 50 us, to wake several
/// together.
void ask_for_sharp_timers() {
  thread_local bool asked = false;
  if (!asked) prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  asked = true;
}

}  // namespace

void wait_until(Moment deadline, Moment spin) {
  ask_for_sharp_timers();
  const Moment wake = deadline - spin;
  if (wake > host_now()) {
    // CLOCK_MONOTONIC is what host_now() reads.
    const timespec until{.tv_sec = wake / kSecond, .tv_nsec = wake % kSecond};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    }
  }
  while (host_now() < deadline) {
  }
}

void Pace::pass(Moment duration) {
  const Moment begin = host_now();
  const Moment wanted = duration - owed_;
  if (wanted <= 0) {
    owed_ -= duration;
    return;
  }
  wait_until(begin + wanted, std::min(spin_, wanted));
  owed_ = host_now() - (begin + wanted);
}

Moment spin_time(int workers_on_host, int cores) {
  constexpr Moment kAlone = 30'000, kShared = 2'000;  // ns
  return workers_on_host <= cores ? kAlone : kShared;
}

}  // namespace lockstep::runner
