#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/algorithms/message.h"
#include "sim/core/task_graph.h"
#include "sim/core/time.h"
#include "sim/core/units.h"

namespace lockstep {

/// Who sends which chunks to whom, in which step, and what the receiver does with them.
struct ScheduledMessage {
  std::uint32_t step = 0;  ///< from 0
  std::uint32_t from = 0, to = 0;
  std::uint32_t first = 0, chunks = 0;  ///< as in Message
  Bytes bytes;
  bool adds = false;          ///< else they take the place of what the receiver has there
  Time start = {}, end = {};  ///< zero unless timed: from when both ends were ready to the arrival
  bool operator==(const ScheduledMessage&) const = default;
};

/// A collective written out: all messages of all ranks. What StepPlan (steps.h) says, as a list.
struct Schedule {
  Collective collective;
  std::uint32_t ranks = 0;
  std::uint32_t steps = 0;
  std::vector<Bytes> chunks;               ///< sizes of the pieces of the array
  std::vector<ScheduledMessage> messages;  ///< by step, sender, receiver
  bool timed = false;
  Time time = {};  ///< until the last rank is through; zero unless timed
};

/// More are not listed.
inline constexpr std::size_t kMostMessages = 50'000;

/// Throws InputError where the root is none of the ranks, bytes are no whole elements, or there are
/// more than kMostMessages.
Schedule schedule_of(const Collective& collective, std::uint32_t ranks);

/// What a rank sends and receives in all.
struct Traffic {
  Bytes sent, received;
  bool operator==(const Traffic&) const = default;
};
std::vector<Traffic> traffic(const Schedule& schedule);

/// "2", "2-5", of chunks that go round the end "6-1"; of an all-to-all "0>2", from whom and for
/// whom.
std::string chunk_label(const Schedule& schedule, const ScheduledMessage& message);

}  // namespace lockstep
