#include "sim/report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "sim/core/error.h"
#include "sim/report/columns.h"

namespace lockstep {
namespace {

struct Part {
  const char* name;
  Time Breakdown::* time;
};
constexpr Part kParts[] = {{"compute", &Breakdown::compute}, {"exposed", &Breakdown::exposed},
                           {"waiting", &Breakdown::waiting}, {"host", &Breakdown::host},
                           {"input", &Breakdown::input},     {"idle", &Breakdown::idle}};

std::string ratio(double of, double to) {
  return to > 0 ? fmt::format("{:.3f}", of / to) : "-";
}

/// The part of the step that changes most, and by how much.
std::string largest_change(const Breakdown& a, const Breakdown& b) {
  const Part* largest = &kParts[0];
  const auto change = [&](const Part& part) { return b.*part.time - a.*part.time; };
  for (const Part& part : kParts) {
    if (std::abs(change(part).ps()) > std::abs(change(*largest).ps())) largest = &part;
  }
  if (change(*largest) == Time{}) return "nothing";
  return fmt::format("{} {:+.2f}", largest->name, change(*largest).ms());
}

std::string described(const char* letter, const Prediction& prediction) {
  return fmt::format("{}: {} ({}, {} scaling, {}{}, calibration {})\n", letter, prediction.scenario,
                     prediction.model, prediction.weak ? "weak" : "strong", prediction.precision,
                     prediction.graph ? ", graph" : "", prediction.calibration);
}

/// What makes the two hard to compare.
std::string differences(const Prediction& a, const Prediction& b) {
  std::vector<std::string> notes;
  if (a.model != b.model) notes.emplace_back("models");
  if (a.weak != b.weak) notes.emplace_back("kinds of scaling");
  if (a.precision != b.precision) notes.emplace_back("precisions");
  if (a.sync != b.sync) notes.emplace_back("ways to synchronise");
  if (a.graph != b.graph) notes.emplace_back("ways to launch");
  if (a.calibration != b.calibration) notes.emplace_back("calibrations");
  return notes.empty() ? "" : fmt::format("They differ in {}.\n", fmt::join(notes, ", "));
}

const ResultPoint* at(const Prediction& prediction, int workers) {
  const auto found = std::ranges::find(prediction.points, workers, &ResultPoint::workers);
  return found == prediction.points.end() ? nullptr : &*found;
}

}  // namespace

std::string compare_table(const Prediction& a, const Prediction& b) {
  Columns columns;
  columns.row({"workers", "strategy A", "B", "step A, ms", "B", "B/A", "samples/s A", "B", "B/A",
               "most changed, ms"});
  bool any = false;
  for (const ResultPoint& first : a.points) {
    const ResultPoint* second = at(b, first.workers);
    if (second == nullptr) continue;
    any = true;
    columns.row({fmt::to_string(first.workers), first.strategy, second->strategy,
                 ms(first.step.p50), ms(second->step.p50),
                 ratio(second->step.p50.seconds(), first.step.p50.seconds()),
                 fmt::format("{:.0f}", first.throughput), fmt::format("{:.0f}", second->throughput),
                 ratio(second->throughput, first.throughput),
                 largest_change(first.breakdown, second->breakdown)});
  }
  if (!any) {
    throw InputError({}, "workers", "the two results share no number of workers",
                     "simulate both with --set workers=[...] alike");
  }
  return described("A", a) + described("B", b) + differences(a, b) + "\n" + columns.text();
}

}  // namespace lockstep
