#include "calibration/fit_tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "calibration/robust.h"

namespace lockstep {
namespace {

struct PointSamples {
  std::vector<Time> p10, p50, p90, host;
};
using PointsBySize = std::map<Bytes, PointSamples>;

void add_points(const std::vector<CollectivePoint>& measured, const SpeedIndex& index,
                const Speed& speed, PointsBySize& points) {
  const auto normal = [&](Time time) { return speed.normalised(time, index); };
  for (const CollectivePoint& point : measured) {
    PointSamples& at = points[point.bytes];
    at.p10.push_back(normal(point.p10));
    at.p50.push_back(normal(point.p50));
    at.p90.push_back(normal(point.p90));
    at.host.push_back(normal(point.host));
  }
}

/// As they were measured. On a card, whose speed does not drift, what disturbs a kernel only makes
/// it take longer: of an even number of repeats the lower one in the middle counts.
std::vector<CollectivePoint> medians(const PointsBySize& points, bool drifts) {
  const auto middle = [drifts](const std::vector<Time>& times) {
    return drifts ? median(times) : lower_median(times);
  };
  std::vector<CollectivePoint> table;
  for (const auto& [bytes, at] : points) {
    table.push_back({bytes, middle(at.p10), middle(at.p50), middle(at.p90), median(at.host)});
  }
  return table;
}

/// More bytes do not take less time.
std::vector<CollectivePoint> fitted(const PointsBySize& points, bool drifts) {
  std::vector<CollectivePoint> table = medians(points, drifts);
  for (Time CollectivePoint::* const time :
       {&CollectivePoint::p10, &CollectivePoint::p50, &CollectivePoint::p90}) {
    std::vector<Time> times;
    for (const CollectivePoint& point : table) times.push_back(point.*time);
    times = non_decreasing(times);
    for (std::size_t i = 0; i < table.size(); ++i) table[i].*time = times[i];
  }
  return table;
}

/// How far the repeats lie from the fit, relative, in the median.
Fit residual_of(const CollectiveTable& table, const PointsBySize& points) {
  std::vector<double> distances;
  for (const CollectivePoint& point : table.points) {
    if (point.p50 <= Time{}) continue;
    for (const Time sample : points.at(point.bytes).p50) {
      distances.push_back(std::abs(sample.seconds() / point.p50.seconds() - 1));
    }
  }
  const std::string what = fmt::format("collective {} over {}, {} workers", table.collective,
                                       table.backend, table.workers);
  return {what, distances.empty() ? 0 : median(distances), static_cast<int>(distances.size())};
}

/// Log-ratios of together over alone, kept apart by kind of layer.
using Ratios = std::map<std::string, std::vector<double>>;

Ratios ratios(const std::vector<InterferenceSample>& samples, const std::string& beside) {
  Ratios result;
  for (const InterferenceSample& sample : samples) {
    if (sample.beside != beside || sample.alone <= Time{} || sample.together <= Time{}) continue;
    result[sample.layer_kind].push_back(sample.together.seconds() / sample.alone.seconds());
  }
  return result;
}

/// Of an all-reduce beside compute: what it takes longer whatever its size, and by how much each
/// further byte is slower. Two sizes tell them apart.
struct BesideCompute {
  Time wait;
  double factor = 1;
  double working = 1;  ///< the share of the larger one's time in which it does not wait
};

std::optional<BesideCompute> beside_compute(const std::vector<InterferenceSample>& samples,
                                            const std::optional<std::string>& layer_kind) {
  std::map<Bytes, std::pair<std::vector<Time>, std::vector<Time>>> by_size;  // alone, together
  for (const InterferenceSample& sample : samples) {
    if (sample.beside != "compute" || sample.bytes <= Bytes{}) continue;
    if (layer_kind && sample.layer_kind != *layer_kind) continue;
    by_size[sample.bytes].first.push_back(sample.alone);
    by_size[sample.bytes].second.push_back(sample.together);
  }
  if (by_size.size() < 2) return std::nullopt;
  const auto middle = [](const auto& entry) {
    return std::pair(median(entry.second.first), median(entry.second.second));
  };
  const auto [small_alone, small_together] = middle(*by_size.begin());
  const auto [large_alone, large_together] = middle(*by_size.rbegin());
  BesideCompute result;
  if (large_alone > small_alone) {
    result.factor = std::max(
        1.0, (large_together - small_together).seconds() / (large_alone - small_alone).seconds());
  }
  result.wait = std::max(Time{}, small_together - small_alone);
  result.working = std::clamp(1 - result.wait.seconds() / large_together.seconds(), 0.1, 1.0);
  return result;
}

double factor(const std::vector<double>& values) {
  return values.empty() ? 1 : std::max(1.0, median(values));
}

/// Over all kinds, each counting once. Notes how far repeats lie apart.
double factor_of_all(const Ratios& by_kind, const std::string& beside, std::vector<Fit>& fits) {
  std::vector<double> medians;
  std::vector<std::vector<double>> groups;
  int points = 0;
  for (const auto& [kind, values] : by_kind) {
    medians.push_back(median(values));
    groups.push_back(values);
    points += static_cast<int>(values.size());
  }
  const double result = factor(medians);
  if (points > 0) {
    fits.push_back({"interference, " + beside, pairwise_sigma(groups) / result, points});
  }
  return result;
}

}  // namespace

std::vector<CollectiveTable> fit_collectives(const std::vector<CollectiveSample>& samples,
                                             const Speed& speed, std::vector<Fit>& fits) {
  using Key = std::tuple<std::string, std::string, std::string, int, std::string>;
  struct Group {
    CollectiveTable table;
    PointsBySize points, held_out;
    std::vector<Time> between;
  };
  std::map<Key, Group> groups;
  for (const CollectiveSample& sample : samples) {
    const CollectiveTable& t = sample.table;
    Group& group = groups[{t.collective, t.backend, t.algorithm, t.workers, t.topology}];
    group.table = t;
    add_points(t.points, sample.speed_index, speed, group.points);
    add_points(t.held_out, sample.speed_index, speed, group.held_out);
    if (t.call_between > Time{}) group.between.push_back(t.call_between);
  }
  std::vector<CollectiveTable> tables;
  for (auto& [key, group] : groups) {
    if (group.points.empty()) continue;
    group.table.points = fitted(group.points, speed.drifts());
    group.table.held_out = medians(group.held_out, speed.drifts());
    group.table.call_between = group.between.empty() ? Time{} : median(group.between);
    fits.push_back(residual_of(group.table, group.points));
    tables.push_back(std::move(group.table));
  }
  return tables;
}

std::vector<CopyTable> fit_copies(const std::vector<CopyTable>& samples) {
  std::map<std::string, std::map<Bytes, std::vector<CopyPoint>>> groups;
  for (const CopyTable& table : samples) {
    for (const CopyPoint& point : table.points) {
      groups[table.what][point.bytes].push_back(point);
    }
  }
  std::vector<CopyTable> tables;
  for (const auto& [what, by_bytes] : groups) {
    CopyTable table{what, {}};
    for (const auto& [bytes, points] : by_bytes) {
      std::vector<Time> device, host;
      for (const CopyPoint& point : points) {
        device.push_back(point.device);
        host.push_back(point.host);
      }
      table.points.push_back({bytes, points.front().tensors, median(device), median(host)});
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

InterferenceFit fit_interference(const std::vector<InterferenceSample>& samples,
                                 std::vector<Fit>& fits) {
  const Ratios waiting = ratios(samples, "waiting");
  const Ratios transferring = ratios(samples, "transferring");
  InterferenceFit fit;
  fit.waiting = factor_of_all(waiting, "beside a collective that waits", fits);
  fit.transferring = factor_of_all(transferring, "beside a collective that transfers", fits);
  fit.collective_beside_compute =
      factor_of_all(ratios(samples, "compute"), "a collective beside compute", fits);
  if (const auto beside = beside_compute(samples, std::nullopt)) {
    fit.collective_beside_compute = beside->factor;
    fit.wait_beside_compute = beside->wait;
  }
  std::map<std::string, InterferenceFit::ByLayerKind> kinds;
  const auto of_kind = [&](const std::string& kind) -> InterferenceFit::ByLayerKind& {
    return kinds
        .try_emplace(kind, InterferenceFit::ByLayerKind{kind, fit.waiting, fit.transferring,
                                                        fit.collective_beside_compute,
                                                        fit.wait_beside_compute})
        .first->second;
  };
  for (const auto& [kind, values] : waiting) {
    if (!kind.empty()) of_kind(kind).waiting = factor(values);
  }
  for (const auto& [kind, values] : transferring) {
    if (!kind.empty()) of_kind(kind).transferring = factor(values);
  }
  for (auto& [kind, entry] : kinds) {
    if (const auto beside = beside_compute(samples, kind)) {
      entry.collective_beside = beside->factor;
      entry.wait_beside = beside->wait;
      // Measured over all of a collective's time, part of which it waits and disturbs nobody.
      entry.transferring = 1 + (entry.transferring - 1) / beside->working;
    }
    fit.by_layer_kind.push_back(std::move(entry));
  }
  return fit;
}

std::vector<CoreSlowdown> fit_cores(const std::vector<CoreSample>& samples, const Speed& speed) {
  std::map<int, std::map<int, std::vector<Time>>> by_threads;  // threads, active
  for (const CoreSample& sample : samples) {
    by_threads[sample.threads][sample.active].push_back(
        speed.normalised(sample.time, sample.speed_index));
  }
  std::vector<CoreSlowdown> table;
  for (const auto& [threads, by_active] : by_threads) {
    const auto alone = by_active.find(1);
    if (alone == by_active.end()) continue;  // against nothing there is no slow-down
    const double one = median(alone->second).seconds();
    for (const auto& [active, times] : by_active) {
      const double slowdown = one > 0 ? median(times).seconds() / one : 1;
      table.push_back({active, threads, active == 1 ? 1 : std::max(1e-6, slowdown)});
    }
  }
  return table;
}

}  // namespace lockstep
