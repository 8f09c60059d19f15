#include "sim/records/schedule.h"

#include <optional>

#include "sim/collectives/algorithms.h"
#include "sim/core/files.h"
#include "sim/records/json_fields.h"
#include "sim/records/json_text.h"

namespace lockstep {

void write_schedule(const Schedule& schedule, const std::string& file) {
  const Collective& collective = schedule.collective;
  const bool rooted = has_root(collective.kind);
  JsonWriter out = begin_file("collective");
  out.field("collective", std::string(to_string(collective.kind)));
  out.field("algorithm", std::string(to_string(collective.algorithm)));
  out.field("ranks", std::int64_t{schedule.ranks});
  out.field("root", rooted ? std::optional<std::int64_t>(collective.root) : std::nullopt);
  out.field("per_host", std::int64_t{collective.per_host});
  out.field("bytes", collective.bytes);
  out.field("steps", std::int64_t{schedule.steps});
  out.field("time_ns", schedule.timed ? std::optional<Time>(schedule.time) : std::nullopt);
  out.field("chunks", schedule.chunks);
  auto rows = nlohmann::ordered_json::array();
  for (const ScheduledMessage& message : schedule.messages) {
    rows.push_back(nlohmann::ordered_json::array(
        {message.step, message.from, message.to, message.first, message.chunks, message.bytes.count,
         message.adds, message.start.ns(), message.end.ns()}));
  }
  nlohmann::ordered_json table;
  table["columns"] = nlohmann::ordered_json::array(
      {"step", "from", "to", "first", "chunks", "bytes", "adds", "start_ns", "end_ns"});
  table["rows"] = std::move(rows);
  out.put("messages", std::move(table));
  write_file(file, to_text(out.take()));
}

}  // namespace lockstep
