#include "runner/measure/visit_record.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/core/files.h"
#include "sim/records/json_fields.h"
#include "sim/records/json_text.h"

namespace lockstep {

namespace {

constexpr Range kAnySpan{0, 9e15};  // ns: 104 days, what Time holds

}  // namespace

template <class Io>
void describe(Io& io, Described<Io, runner::PieceEstimate>& piece) {
  io.field("piece", piece.name);
  io.field("least_ns", piece.least, kAnySpan);
  io.field("full_ns", piece.full, kAnySpan);
}

template <class Io>
void describe(Io& io, Described<Io, runner::PieceDone>& piece) {
  io.field("repeat", piece.repeat);
  io.field("piece", piece.piece);
  io.field("took_ns", piece.took, kAnySpan);
}

template <class Io>
void describe(Io& io, Described<Io, runner::VisitRecord>& record) {
  io.field("id", record.id);
  io.field("date", record.date);
  io.field("settings", record.settings);
  io.field("repeats", record.repeats, kAtLeastOne);
  io.field("start_ns", record.start, kAnySpan);
  io.field("spent_ns", record.spent, kAnySpan);
  io.field("finished", record.finished);
  io.field("older", record.older);
  io.field("pieces", record.pieces);
  io.field("done", record.done);
}

}  // namespace lockstep

namespace lockstep::runner {

bool VisitRecord::has(int repeat, std::string_view piece) const {
  return std::ranges::any_of(
      done, [&](const PieceDone& one) { return one.repeat == repeat && one.piece == piece; });
}

bool VisitRecord::has_all(int repeat) const {
  return !pieces.empty() && std::ranges::all_of(pieces, [&](const PieceEstimate& piece) {
    return has(repeat, piece.name);
  });
}

VisitRecord read_visit(const std::string& file) {
  const nlohmann::json json = read_json(file);
  const JsonPath at(file);
  JsonReader in(json, at);
  check_header(in, "visit");
  VisitRecord record;
  describe(in, record);
  in.finish();
  return record;
}

void write_visit(const VisitRecord& record, const std::string& file) {
  JsonWriter out = begin_file("visit");
  describe(out, record);
  write_file(file, to_text(out.take()));
}

std::string visit_file(const std::string& out) {
  return out + "/visit.json";
}

std::string difference(const std::map<std::string, std::string>& before,
                       const std::map<std::string, std::string>& now) {
  for (const auto& [flag, value] : now) {
    const auto found = before.find(flag);
    const std::string was = found == before.end() ? "" : found->second;
    if (was != value) return fmt::format("--{} was \"{}\" and is \"{}\"", flag, was, value);
  }
  for (const auto& [flag, value] : before) {
    if (!now.contains(flag)) return fmt::format("--{} was \"{}\" and is \"\"", flag, value);
  }
  return "";
}

std::vector<PieceEstimate> still_to_do(const VisitRecord& record, int repeat) {
  std::vector<PieceEstimate> result;
  for (int r = repeat; r < record.repeats; ++r) {
    if (r > repeat)
      result.push_back({.name = "start", .least = record.start, .full = record.start});
    for (const PieceEstimate& piece : record.pieces) {
      if (!record.has(r, piece.name)) result.push_back(piece);
    }
  }
  return result;
}

std::vector<PieceEstimate> as_measured(const VisitRecord& record) {
  std::vector<PieceEstimate> result = record.pieces;
  for (PieceEstimate& piece : result) {
    std::vector<Time> times;
    for (const PieceDone& done : record.done) {
      if (done.piece == piece.name) times.push_back(done.took);
    }
    if (times.empty()) continue;
    std::ranges::sort(times);
    piece.full = times[times.size() / 2];
    piece.least = std::min(piece.least, piece.full);
  }
  return result;
}

}  // namespace lockstep::runner
