#include "sim/collectives/schedule.h"

#include <fmt/core.h>

#include <algorithm>

#include "sim/collectives/algorithms.h"
#include "sim/collectives/steps.h"
#include "sim/core/error.h"

namespace lockstep {
namespace {

/// Ranks times steps that are looked at for messages.
constexpr std::uint64_t kMostTurns = 20'000'000;
/// All-to-alls have the square of it in chunks.
constexpr std::uint32_t kMostRanks = 65'535;

[[noreturn]] void refuse_many(const Collective& collective, std::uint32_t ranks) {
  throw InputError(
      {}, "",
      fmt::format("{} by {} among {} ranks has more than {} messages", to_string(collective.kind),
                  to_string(collective.algorithm), ranks, kMostMessages),
      "take fewer ranks or larger segments");
}

void check(const Collective& collective, std::uint32_t ranks) {
  if (ranks < 1 || ranks > kMostRanks) {
    throw InputError({}, "ranks", fmt::format("{} of them", ranks),
                     fmt::format("from 1 to {}", kMostRanks));
  }
  if (collective.root >= ranks) {
    throw InputError({}, "root", fmt::format("there is no rank {}", collective.root),
                     fmt::format("with {} ranks the last is {}", ranks, ranks - 1));
  }
  constexpr Bytes kMost{std::int64_t{1} << 40};
  if (collective.bytes > kMost) {
    throw InputError({}, "bytes", fmt::format("{} B are too many", collective.bytes.count),
                     "at most 1 TiB");
  }
  const Bytes element = collective.step.element;
  if (collective.bytes.count % element.count != 0) {
    throw InputError({}, "bytes", fmt::format("{} B are no whole elements", collective.bytes.count),
                     fmt::format("a multiple of {} B", element.count));
  }
  // Segments are counted in 32 bits, and each is a message.
  const Bytes segment = collective.step.segment;
  const bool tiny = segment > Bytes{} && collective.bytes.count / segment.count >
                                             static_cast<std::int64_t>(kMostMessages);
  if (tiny) refuse_many(collective, ranks);
}

}  // namespace

Schedule schedule_of(const Collective& collective, std::uint32_t ranks) {
  check(collective, ranks);
  const StepPlan plan(collective, ranks);
  if (std::uint64_t{plan.steps()} * ranks > kMostTurns) refuse_many(collective, ranks);
  Schedule schedule{.collective = collective,
                    .ranks = ranks,
                    .steps = plan.steps(),
                    .chunks = {},
                    .messages = {}};
  std::vector<Message> sends;
  for (std::uint32_t step = 0; step < plan.steps(); ++step) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      sends.clear();
      plan.sends(rank, step, sends);
      for (const Message& message : sends) {
        schedule.messages.push_back({.step = step,
                                     .from = rank,
                                     .to = message.peer,
                                     .first = message.first,
                                     .chunks = message.chunks,
                                     .bytes = message.bytes,
                                     .adds = plan.reduces(step)});
      }
      if (schedule.messages.size() > kMostMessages) refuse_many(collective, ranks);
    }
  }
  if (schedule.messages.empty()) return schedule;  // of one rank or no bytes
  for (std::uint32_t i = 0; i < plan.chunks(); ++i) schedule.chunks.push_back(plan.chunk(i));
  return schedule;
}

std::vector<Traffic> traffic(const Schedule& schedule) {
  std::vector<Traffic> sums(schedule.ranks);
  for (const ScheduledMessage& message : schedule.messages) {
    sums[message.from].sent += message.bytes;
    sums[message.to].received += message.bytes;
  }
  return sums;
}

std::string chunk_label(const Schedule& schedule, const ScheduledMessage& message) {
  if (schedule.collective.kind == CollectiveKind::all_to_all) {
    return fmt::format("{}>{}", message.first / schedule.ranks, message.first % schedule.ranks);
  }
  if (message.chunks == 1) return fmt::format("{}", message.first);
  const std::size_t last = (message.first + message.chunks - 1) % schedule.chunks.size();
  return fmt::format("{}-{}", message.first, last);
}

}  // namespace lockstep
