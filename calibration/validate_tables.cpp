#include "calibration/validate_tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "sim/collectives/table.h"
#include "sim/core/units.h"

namespace lockstep {
namespace {

constexpr std::string_view kAllReduce = "all_reduce";

bool is_table(const CollectiveTable& table) {
  return table.collective == kAllReduce && table.backend == "nccl" && table.topology == kOneHost &&
         table.workers >= 2;
}

/// `what` tells points of one size apart.
ValidationPoint compare_times(const Calibration& calibration, const CollectiveTable& table,
                              const CollectivePoint& measured, Time predicted,
                              const std::string& what) {
  ValidationPoint point;
  point.run = fmt::format("{}/{}-n{}, {}", calibration.id, table.collective, table.workers, what);
  point.strategy = table.collective;
  point.workers = table.workers;
  point.bytes = measured.bytes;
  point.predicted = predicted;
  point.measured = point.measured_normalised = measured.p50;
  const double center = measured.p50.seconds();
  point.repeat_spread = std::max(0.0, (measured.p90 - measured.p10).seconds() / center);
  point.error = predicted.seconds() / center - 1;
  return point;
}

CollectiveTable without(CollectiveTable table, std::size_t index) {
  table.points.erase(table.points.begin() + static_cast<std::ptrdiff_t>(index));
  return table;
}

/// A time of zero has no relative error.
bool timed(const CollectivePoint& point) {
  return point.p50 > Time{};
}

void add_sizes(const Calibration& calibration, const CollectiveTable& table,
               std::vector<ValidationPoint>& points) {
  const auto add = [&](const CollectivePoint& measured, const CollectiveTable& from,
                       const std::string& what) {
    if (!timed(measured)) return;
    points.push_back(
        compare_times(calibration, table, measured, lookup(from, measured.bytes).device, what));
    points.back().basis = Basis::interpolated;
  };
  for (const CollectivePoint& held : table.held_out) add(held, table, "held out");
  if (!table.held_out.empty()) return;
  for (std::size_t i = 1; i + 1 < table.points.size(); ++i) {
    add(table.points[i], without(table, i), "left out");
  }
}

/// `known`: the tables of at most `most` workers.
void add_counts(const Calibration& calibration, std::span<const CollectiveTable> known, int most,
                const CollectiveTable& table, std::vector<ValidationPoint>& points) {
  for (const CollectivePoint& measured : table.points) {
    if (!timed(measured)) continue;
    const TableCost cost =
        estimate(known, CollectiveKind::all_reduce, table.workers, measured.bytes);
    points.push_back(compare_times(calibration, table, measured, cost.device,
                                   fmt::format("from n <= {}", most)));
    points.back().basis = Basis::extrapolated;
  }
}

ValidationGroup from_fewer(const Calibration& calibration, const std::string& name, int most) {
  ValidationGroup group{name, 0, 0, {}};
  std::vector<CollectiveTable> known;
  std::ranges::copy_if(
      calibration.collectives, std::back_inserter(known),
      [most](const CollectiveTable& table) { return is_table(table) && table.workers <= most; });
  if (std::ranges::find(known, most, &CollectiveTable::workers) == known.end()) return group;
  for (const CollectiveTable& table : calibration.collectives) {
    if (!is_table(table) || table.workers <= most) continue;
    add_counts(calibration, known, most, table, group.points);
  }
  return group;
}

}  // namespace

std::vector<ValidationGroup> validate_tables(const Calibration& calibration) {
  ValidationGroup sizes{"all_reduce_sizes", 0, 0, {}};
  for (const CollectiveTable& table : calibration.collectives) {
    if (is_table(table)) add_sizes(calibration, table, sizes.points);
  }
  std::vector<ValidationGroup> groups;
  groups.push_back(std::move(sizes));
  groups.push_back(from_fewer(calibration, "all_reduce_from_n2", 2));
  groups.push_back(from_fewer(calibration, "all_reduce_from_n3", 3));
  std::erase_if(groups, [](const ValidationGroup& group) { return group.points.empty(); });
  return groups;
}

Calibration up_to(const Calibration& calibration, int workers) {
  Calibration fewer = calibration;
  std::erase_if(fewer.collectives,
                [workers](const CollectiveTable& table) { return table.workers > workers; });
  std::erase_if(fewer.profiles,
                [workers](const Profile& profile) { return profile.beside > workers; });
  const bool reduces = std::ranges::any_of(fewer.collectives, is_table);
  return reduces && !fewer.profiles.empty() ? fewer : Calibration{};
}

}  // namespace lockstep
