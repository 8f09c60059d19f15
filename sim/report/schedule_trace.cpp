#include <fmt/format.h>

#include <iterator>
#include <set>
#include <utility>

#include "sim/core/error.h"
#include "sim/report/microseconds.h"
#include "sim/report/schedule_table.h"

namespace lockstep {
namespace {

class ScheduleTrace {
 public:
  explicit ScheduleTrace(const Schedule& schedule) : schedule_(schedule) {
    for (std::uint32_t rank = 0; rank < schedule.ranks; ++rank) {
      event(R"("ph":"M","pid":{},"name":"process_name","args":{{"name":"rank {}"}})", rank, rank);
      event(R"("ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}})", rank,
            rank);
    }
    for (const ScheduledMessage& message : schedule.messages) add(message);
  }

  std::string finish() {
    return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + events_ + "\n]}\n";
  }

 private:
  std::uint32_t lane_to(std::uint32_t rank, std::uint32_t peer) {
    return lane(rank, 2 * peer + 1, fmt::format("to {}", peer));
  }
  std::uint32_t lane_from(std::uint32_t rank, std::uint32_t peer) {
    return lane(rank, 2 * peer + 2, fmt::format("from {}", peer));
  }
  /// Named when it is first used.
  std::uint32_t lane(std::uint32_t rank, std::uint32_t thread, const std::string& name) {
    if (named_.insert({rank, thread}).second) {
      event(R"("ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"{}"}})", rank,
            thread, name);
    }
    return thread;
  }

  void add(const ScheduledMessage& message) {
    const std::string name =
        fmt::format("step {}: chunks {}{}", message.step + 1, chunk_label(schedule_, message),
                    message.adds ? ", added" : "");
    const std::uint32_t out = lane_to(message.from, message.to);
    const std::uint32_t in = lane_from(message.to, message.from);
    for (const auto& [rank, thread] : {std::pair(message.from, out), std::pair(message.to, in)}) {
      event(
          R"("ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"cat":"message","name":"{}","args":{{"bytes":{}}})",
          rank, thread, microseconds(message.start), microseconds(message.end - message.start),
          name, message.bytes.count);
    }
    ++arrows_;
    event(R"("ph":"s","pid":{},"tid":{},"ts":{},"id":{},"cat":"message","name":"message")",
          message.from, out, microseconds(message.start), arrows_);
    event(R"("ph":"f","bp":"e","pid":{},"tid":{},"ts":{},"id":{},"cat":"message","name":"message")",
          message.to, in, microseconds(message.end), arrows_);
  }

  template <typename... Values>
  void event(fmt::format_string<Values...> format, Values&&... values) {
    events_ += events_.empty() ? "{" : ",\n{";
    fmt::format_to(std::back_inserter(events_), format, std::forward<Values>(values)...);
    events_ += '}';
  }

  const Schedule& schedule_;
  std::string events_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> named_;
  std::uint64_t arrows_ = 0;
};

}  // namespace

std::string to_chrome_trace(const Schedule& schedule) {
  LOCKSTEP_ASSERT(schedule.timed, "a trace has times");
  return ScheduleTrace(schedule).finish();
}

}  // namespace lockstep
