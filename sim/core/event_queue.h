#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/core/units.h"

namespace lockstep {

/// What ends or begins; in this order within one instant.
enum class EventKind : std::uint8_t {
  task_end,       ///< target: lane of a worker
  transfer_end,   ///< target: collective
  message_join,   ///< target: way between two ranks; the next message's latency is over
  message_end,    ///< target: way between two ranks
  reduction_end,  ///< target: receiving rank; generation: its step
};

/// 24 bytes, ordered by (time, kind, sequence): the one place where ties are broken.
struct Event {
  std::int64_t time;  ///< picoseconds
  std::uint64_t order;
  std::uint32_t target;
  std::uint32_t generation;  ///< of the target when scheduled; an older one is stale

  EventKind kind() const { return static_cast<EventKind>(order >> kKindShift); }
  static constexpr int kKindShift = 56;
};
static_assert(sizeof(Event) == 24);

/// Compared as one 128-bit number, which takes no branch that could be mispredicted; times are
/// never negative.
inline bool earlier(const Event& a, const Event& b) {
  const auto key = [](const Event& e) {
    return Uint128{static_cast<std::uint64_t>(e.time)} << 64 | e.order;
  };
  return key(a) < key(b);
}

/// 53 days in picoseconds: a time below it and any one duration below it never overflow together.
inline constexpr std::int64_t kHorizon = std::int64_t{1} << 62;
/// Throws InputError: something simulated would happen beyond the horizon.
[[noreturn]] void refuse_beyond_horizon();

/// A binary heap. pop() leaves a hole at the root that the next push() fills: an event that causes
/// one other, the usual case, costs one sift instead of two.
class EventQueue {
 public:
  EventQueue() { heap_.reserve(256); }

  bool empty() {
    close_hole();
    return heap_.empty();
  }

  /// The earliest event; the queue must not be empty.
  const Event& top() {
    close_hole();
    return heap_.front();
  }

  Event pop() {
    const Event event = top();
    hole_ = true;
    return event;
  }

  void push(std::int64_t time, EventKind kind, std::uint32_t target, std::uint32_t generation) {
    if (time > kHorizon) [[unlikely]]
      refuse_beyond_horizon();
    const Event event{
        time, (std::uint64_t{static_cast<std::uint8_t>(kind)} << Event::kKindShift) | sequence_++,
        target, generation};
    if (hole_) {
      hole_ = false;
      sift_down(event);
    } else {
      heap_.push_back(event);
      sift_up(event);
    }
  }

 private:
  void close_hole() {
    if (!hole_) return;
    hole_ = false;
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sift_down(last);
  }

  void sift_up(const Event& event) {
    std::size_t i = heap_.size() - 1;
    while (i > 0) {
      const std::size_t parent = (i - 1) / 2;
      if (!earlier(event, heap_[parent])) break;
      heap_[i] = heap_[parent];
      i = parent;
    }
    heap_[i] = event;
  }

  void sift_down(const Event& event) {
    const std::size_t size = heap_.size();
    std::size_t i = 0;
    for (;;) {
      std::size_t child = 2 * i + 1;
      if (child >= size) break;
      child += child + 1 < size && earlier(heap_[child + 1], heap_[child]) ? 1 : 0;
      if (!earlier(heap_[child], event)) break;
      heap_[i] = heap_[child];
      i = child;
    }
    heap_[i] = event;
  }

  std::vector<Event> heap_;
  std::uint64_t sequence_ = 0;  ///< 56 bits: 200 years at 10 M events a second
  bool hole_ = false;
};

}  // namespace lockstep
