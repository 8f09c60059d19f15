#include "sim/report/schedule_table.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sim/collectives/algorithms.h"
#include "sim/collectives/bus_bandwidth.h"
#include "sim/report/columns.h"

namespace lockstep {
namespace {

constexpr std::size_t kMostLines = 200;

void append(std::vector<std::string>& cells, std::string start, std::string end) {
  cells.push_back(std::move(start));
  cells.push_back(std::move(end));
}

std::string cut(const Schedule& schedule) {
  if (schedule.chunks.empty()) return "nothing to send";
  const auto [least, most] = std::ranges::minmax(schedule.chunks);
  const std::string sizes =
      least == most ? to_string(most) : fmt::format("{} to {} B", least.count, most.count);
  const std::size_t count = schedule.chunks.size();
  return count == 1 ? fmt::format("in one chunk of {}", sizes)
                    : fmt::format("in {} chunks of {}", count, sizes);
}

std::string heading(const Schedule& schedule) {
  const Collective& collective = schedule.collective;
  std::string text = fmt::format("{} by {} among {} ranks", to_string(collective.kind),
                                 to_string(collective.algorithm), schedule.ranks);
  if (collective.per_host > 1) text += fmt::format(", {} a host", collective.per_host);
  if (has_root(collective.kind)) text += fmt::format(", root {}", collective.root);
  const bool whole =
      goes_in_parts(collective.kind) && collective.kind != CollectiveKind::all_reduce;
  return text + fmt::format("; {}: {}, {}\n", whole ? "the whole array" : "a rank's array",
                            to_string(collective.bytes), cut(schedule));
}

std::string messages(const Schedule& schedule) {
  Columns columns;
  std::vector<std::string> head{"step", "from", "to", "chunks", "size", "is"};
  if (schedule.timed) append(head, "start", "end");
  columns.row(head);
  std::optional<std::uint32_t> before;
  for (const ScheduledMessage& message : schedule.messages) {
    std::vector<std::string> cells{before == message.step ? "" : std::to_string(message.step + 1),
                                   std::to_string(message.from),
                                   std::to_string(message.to),
                                   chunk_label(schedule, message),
                                   to_string(message.bytes),
                                   message.adds ? "added" : "copied"};
    if (schedule.timed) append(cells, to_string(message.start), to_string(message.end));
    columns.row(cells);
    before = message.step;
  }
  return columns.text();
}

/// One line a step, of so many.
std::string steps(const Schedule& schedule) {
  Columns columns;
  std::vector<std::string> head{"step", "messages", "largest", "are"};
  if (schedule.timed) append(head, "first start", "last end");
  columns.row(head);
  auto message = schedule.messages.begin();
  std::size_t lines = 0;
  for (; message != schedule.messages.end() && lines < kMostLines; ++lines) {
    const std::uint32_t step = message->step;
    const bool adds = message->adds;
    std::size_t count = 0;
    Bytes largest;
    Time start = message->start, end;
    for (; message != schedule.messages.end() && message->step == step; ++message, ++count) {
      largest = std::max(largest, message->bytes);
      start = std::min(start, message->start);
      end = std::max(end, message->end);
    }
    std::vector<std::string> cells{std::to_string(step + 1), std::to_string(count),
                                   to_string(largest), adds ? "added" : "copied"};
    if (schedule.timed) append(cells, to_string(start), to_string(end));
    columns.row(cells);
  }
  std::string text = columns.text();
  if (message != schedule.messages.end()) text += "and so on\n";
  return text;
}

/// "96.0 MiB", or from least to most where ranks differ by what can be seen.
std::string of_ranks(const std::vector<Traffic>& all, Bytes Traffic::* part) {
  const auto [least, most] = std::ranges::minmax_element(all, {}, part);
  const std::string low = to_string(*least.*part), high = to_string(*most.*part);
  return low == high ? high : fmt::format("{} to {}", low, high);
}

std::string sums(const Schedule& schedule, const std::optional<Time>& by_formula) {
  const std::vector<Traffic> all = traffic(schedule);
  std::string text =
      fmt::format("{} step{}, {} messages; a rank sends {} and receives {}\n", schedule.steps,
                  schedule.steps == 1 ? "" : "s", schedule.messages.size(),
                  of_ranks(all, &Traffic::sent), of_ranks(all, &Traffic::received));
  if (!schedule.timed) return text;
  const Collective& collective = schedule.collective;
  text += fmt::format("takes {}", to_string(schedule.time));
  if (by_formula) {
    const auto entry = std::ranges::find_if(algorithms(), [&](const AlgorithmEntry& candidate) {
      return candidate.kind == collective.kind && candidate.algorithm == collective.algorithm;
    });
    text += fmt::format("; by formula {}: {}", to_string(*by_formula), entry->formula);
  }
  if (schedule.ranks > 1 && schedule.time > Time{} && collective.bytes > Bytes{}) {
    const double factor = bus_factor(to_string(collective.kind), static_cast<int>(schedule.ranks));
    const double rate =
        static_cast<double>(collective.bytes.count) / schedule.time.seconds() * factor;
    text += fmt::format("\nbus bandwidth {}", to_string(Bandwidth{std::llround(rate)}));
  }
  return text + "\n";
}

}  // namespace

std::string to_table(const Schedule& schedule, const std::optional<Time>& by_formula) {
  std::string text = heading(schedule);
  if (!schedule.messages.empty()) {
    text += "\n" + (schedule.messages.size() <= kMostLines ? messages(schedule) : steps(schedule)) +
            "\n";
  }
  return text + sums(schedule, by_formula);
}

}  // namespace lockstep
