#include "sim/report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "sim/core/task_graph.h"
#include "sim/report/microseconds.h"

namespace lockstep {
namespace {

using Track = std::pair<std::uint32_t, Lane>;  // process, thread

/// A JSON string, whatever bytes it holds.
std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

class TraceWriter {
 public:
  void add(const NamedTimeline& timeline) {
    std::uint32_t most = 0;
    std::set<Track> tracks;
    for (const Span& span : timeline.spans) {
      most = std::max(most, span.worker);
      tracks.emplace(span.worker, span.lane);
    }
    for (const Track& track : tracks) name_track(timeline.name, track);
    for (const Span& span : timeline.spans) add_span(span);
    first_process_ += most + 1;
  }

  std::string finish() {
    return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + events_ + "\n]}\n";
  }

 private:
  std::uint32_t process_of(std::uint32_t worker) const { return first_process_ + worker; }
  static std::size_t thread_of(Lane lane) { return static_cast<std::size_t>(lane) + 1; }

  void name_track(const std::string& timeline, const Track& track) {
    const auto [worker, lane] = track;
    const std::uint32_t process = process_of(worker);
    if (named_.insert(process).second) {
      event(R"("ph":"M","pid":{},"name":"process_name","args":{{"name":{}}})", process,
            json_string(fmt::format("{} worker {}", timeline, worker)));
      event(R"("ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}})", process,
            process);
    }
    event(R"("ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"{}"}})", process,
          thread_of(lane), to_string(lane));
    event(R"("ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}})",
          process, thread_of(lane), thread_of(lane));
  }

  void add_span(const Span& span) {
    event(
        R"("ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"cat":"{}","name":{},"args":{{"iteration":{}}})",
        process_of(span.worker), thread_of(span.lane), microseconds(span.start),
        microseconds(span.end - span.start), to_string(span.kind), json_string(span.name),
        span.iteration);
  }

  template <typename... Values>
  void event(fmt::format_string<Values...> format, Values&&... values) {
    events_ += events_.empty() ? "{" : ",\n{";
    fmt::format_to(std::back_inserter(events_), format, std::forward<Values>(values)...);
    events_ += '}';
  }

  std::string events_;
  std::set<std::uint32_t> named_;
  std::uint32_t first_process_ = 0;
};

}  // namespace

std::string to_chrome_trace(std::span<const NamedTimeline> timelines) {
  TraceWriter writer;
  for (const NamedTimeline& timeline : timelines) writer.add(timeline);
  return writer.finish();
}

}  // namespace lockstep
