#include "sim/core/event_queue.h"

#include <algorithm>
#include <random>
#include <vector>

#include "tests/catch.h"

namespace lockstep {
namespace {

TEST_CASE("events come by time, then kind, then sequence") {
  EventQueue queue;
  queue.push(20, EventKind::task_end, 1, 0);
  queue.push(10, EventKind::message_end, 2, 0);
  queue.push(10, EventKind::task_end, 3, 0);
  queue.push(10, EventKind::task_end, 4, 0);
  std::vector<std::uint32_t> order;
  while (!queue.empty()) order.push_back(queue.pop().target);
  CHECK(order == std::vector<std::uint32_t>{3, 4, 2, 1});
}

TEST_CASE("random pushes and pops come out sorted") {
  std::mt19937 random(3);
  EventQueue queue;
  std::vector<std::int64_t> held, popped;
  for (int i = 0; i < 5000; ++i) {
    const bool push = held.empty() || random() % 5 < 3;
    if (push) {
      const auto time = static_cast<std::int64_t>(random() % 1000);
      queue.push(time, EventKind::task_end, 0, 0);
      held.push_back(time);
    } else {
      const auto least = std::min_element(held.begin(), held.end());
      CHECK(queue.top().time == *least);
      CHECK(queue.pop().time == *least);
      held.erase(least);
    }
  }
  std::sort(held.begin(), held.end());
  while (!queue.empty()) popped.push_back(queue.pop().time);
  CHECK(popped == held);
}

}  // namespace
}  // namespace lockstep
