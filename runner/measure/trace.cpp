#include "runner/measure/trace.h"

#include <fmt/format.h>

#include <array>
#include <sstream>

#include "sim/core/files.h"
#include "sim/report/trace.h"

namespace lockstep::runner {

namespace {

/// One span a line; names hold no spaces that matter: they stand last.
std::string to_lines(const Timeline& timeline) {
  std::string text;
  for (const Span& span : timeline) {
    text += fmt::format("{} {} {} {} {} {}\n", span.worker, static_cast<int>(span.lane),
                        static_cast<int>(span.kind), span.start.ns(), span.end.ns(), span.name);
  }
  return text;
}

void append_lines(const std::string& text, Timeline& timeline) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::uint32_t worker = 0;
    int lane = 0, kind = 0;
    std::int64_t start = 0, end = 0;
    std::string name;
    words >> worker >> lane >> kind >> start >> end;
    std::getline(words >> std::ws, name);
    timeline.push_back({.worker = worker,
                        .lane = static_cast<Lane>(lane),
                        .kind = static_cast<TaskKind>(kind),
                        .iteration = 0,
                        .name = name,
                        .start = Time::nanoseconds(start),
                        .end = Time::nanoseconds(end)});
  }
}

}  // namespace

void write_measured_timeline(Worker& worker, const std::string& run, const Timeline& mine) {
  const auto key = [&run](int rank) { return fmt::format("trace/{}/{}", run, rank); };
  if (!worker.first()) {
    worker.store->set(key(worker.rank()), to_lines(mine));
    return;
  }
  Timeline all = mine;
  for (int rank = 1; rank < worker.size(); ++rank) {
    append_lines(worker.store->get(key(rank), std::chrono::seconds(30)), all);
  }
  const NamedTimeline measured{.name = "measured", .spans = std::move(all)};
  write_file(fmt::format("{}/{}.trace.json", worker.options.out, run),
             to_chrome_trace(std::array{measured}));
}

}  // namespace lockstep::runner
