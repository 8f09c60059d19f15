// Published figures beside predicted ones, as a table and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "calibration/published.h"
#include "sim/core/files.h"
#include "sim/core/units.h"
#include "sim/records/json_fields.h"
#include "sim/records/json_text.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 4> kRoles{"fitted", "predicted", "suspect", "unpredicted"};
constexpr std::array<std::string_view, 5> kQuantities{"step", "epoch", "images/s", "speed-up",
                                                      "efficiency"};

std::string_view role_name(PublishedRole role) {
  return kRoles[static_cast<std::size_t>(role)];
}

std::string_view quantity_name(PublishedQuantity quantity) {
  return kQuantities[static_cast<std::size_t>(quantity)];
}

std::string shown(PublishedQuantity quantity, double value) {
  switch (quantity) {
    case PublishedQuantity::time:
    case PublishedQuantity::epoch:
      return to_string(Time::from_seconds(value));
    case PublishedQuantity::throughput:
      return fmt::format("{:.2f}/s", value);
    case PublishedQuantity::speedup:
      return fmt::format("{:.2f}x", value);
    case PublishedQuantity::efficiency:
      return fmt::format("{:.1f} %", value * 100);
  }
  return "";
}

std::string point_name(const PublishedRow& row) {
  return fmt::format("{}, {} on {}", row.experiment, quantity_name(row.quantity), row.workers);
}

std::string rows_of(const PublishedReport& report, const std::string& name) {
  std::string text;
  if (std::ranges::find(report.rows, name, &PublishedRow::case_name) != report.rows.end()) {
    text = fmt::format("  {:<44} {:<11} {:>10} {:>10} {:>9}\n", "point", "role", "published",
                       "predicted", "error");
  }
  for (const PublishedRow& row : report.rows) {
    if (row.case_name != name) continue;
    const std::string predicted = row.predicted ? shown(row.quantity, *row.predicted) : "-";
    const std::string error =
        row.predicted ? fmt::format("{:+.1f} %", row.error() * 100) : std::string("-");
    text += fmt::format("  {:<44} {:<11} {:>10} {:>10} {:>9}{}{}\n", point_name(row),
                        role_name(row.role), shown(row.quantity, row.published), predicted, error,
                        row.why.empty() ? "" : "  ", row.why);
  }
  for (const PublishedShapeRow& row : report.shapes) {
    if (row.case_name != name) continue;
    text +=
        fmt::format("  {}: {} ({})\n", row.says, row.holds ? "holds" : "DOES NOT HOLD", row.seen);
  }
  return text;
}

nlohmann::ordered_json texts(const std::vector<std::string>& list) {
  auto json = nlohmann::ordered_json::array();
  for (const std::string& text : list) json.push_back(text);
  return json;
}

nlohmann::ordered_json point_json(const PublishedRow& row) {
  JsonWriter out;
  out.field("case", row.case_name);
  out.field("point", point_name(row));
  out.field("role", std::string(role_name(row.role)));
  out.field("workers", row.workers);
  out.field("quantity", std::string(quantity_name(row.quantity)));
  out.field("published", row.published);
  out.field("predicted", row.predicted);
  out.field("error", row.predicted ? std::optional(row.error()) : std::nullopt);
  out.field("why", row.why);
  return out.take();
}

nlohmann::ordered_json shape_json(const PublishedShapeRow& row) {
  JsonWriter out;
  out.field("case", row.case_name);
  out.field("point", row.says);
  out.field("role", std::string("shape"));
  out.field("published", row.says);
  out.field("predicted", row.seen);
  out.field("holds", row.holds);
  return out.take();
}

}  // namespace

std::string to_table(const PublishedReport& report) {
  std::string text;
  for (const PublishedCase& each : report.cases) {
    text += fmt::format("{}{}: {}\n", text.empty() ? "" : "\n", each.name, each.source);
    for (const FittedConstant& constant : report.constants) {
      if (constant.case_name != each.name) continue;
      text += fmt::format("  {} {} (fitted{})\n", constant.name, constant.value,
                          constant.at_end_of_range ? ", at the end of its range" : "");
    }
    text += rows_of(report, each.name);
    for (const std::string& assumption : each.assumptions) {
      text += fmt::format("  assumed: {}\n", assumption);
    }
    for (const std::string& note : each.notes) text += fmt::format("  note: {}\n", note);
  }
  int predicted = 0, suspect = 0, held = 0;
  for (const PublishedRow& row : report.rows) {
    predicted += row.role == PublishedRole::predicted ? 1 : 0;
    suspect += row.role == PublishedRole::suspect ? 1 : 0;
  }
  for (const PublishedShapeRow& row : report.shapes) held += row.holds ? 1 : 0;
  if (const std::optional<double> median = median_error(report)) {
    text +=
        fmt::format("\nPredicted: median error {:.1f} % over {} points; {} suspect, not counted.\n",
                    *median * 100, predicted, suspect);
  }
  text += fmt::format("Shapes: {} of {} hold.\n", held, report.shapes.size());
  return text;
}

void write_published(const PublishedReport& report, const std::string& file) {
  JsonWriter out = begin_file("published");
  out.field("median_error", median_error(report));
  auto cases = nlohmann::ordered_json::array();
  for (const PublishedCase& each : report.cases) {
    JsonWriter one;
    one.field("case", each.name);
    one.field("source", each.source);
    one.put("assumptions", texts(each.assumptions));
    one.put("notes", texts(each.notes));
    cases.push_back(one.take());
  }
  out.put("cases", std::move(cases));
  auto constants = nlohmann::ordered_json::array();
  for (const FittedConstant& constant : report.constants) {
    JsonWriter one;
    one.field("case", constant.case_name);
    one.field("name", constant.name);
    one.field("value", constant.value);
    one.field("at_end_of_range", constant.at_end_of_range);
    constants.push_back(one.take());
  }
  out.put("constants", std::move(constants));
  auto points = nlohmann::ordered_json::array();
  for (const PublishedRow& row : report.rows) points.push_back(point_json(row));
  for (const PublishedShapeRow& row : report.shapes) points.push_back(shape_json(row));
  out.put("points", std::move(points));
  write_file(file, to_text(out.take()));
}

}  // namespace lockstep
