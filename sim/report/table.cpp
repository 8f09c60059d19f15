#include "sim/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "sim/report/columns.h"

namespace lockstep {
namespace {

std::string_view name_of(Basis basis) {
  switch (basis) {
    case Basis::measured:
      return "measured";
    case Basis::interpolated:
      return "interpolated";
    case Basis::extrapolated:
      return "extrapolated";
  }
  return "";
}

/// Independent causes add as squares.
double total(const Uncertainty& uncertainty) {
  return std::sqrt(uncertainty.repeat * uncertainty.repeat + uncertainty.fit * uncertainty.fit +
                   uncertainty.drawn * uncertainty.drawn);
}

std::string percent(double share) {
  return fmt::format("{:.0f}%", 100 * share);
}

std::string points_table(const Prediction& prediction) {
  Columns columns;
  columns.row({"workers", "batch", "strategy", "step ms", "p10", "p50", "p90", "+-", "samples/s",
               "speed-up", "efficiency", "basis"});
  for (const ResultPoint& point : prediction.points) {
    columns.row({fmt::to_string(point.workers), fmt::to_string(point.batch_per_worker),
                 point.strategy, ms(point.step.mean), ms(point.step.p10), ms(point.step.p50),
                 ms(point.step.p90), fmt::format("{:.1f}%", 100 * total(point.uncertainty)),
                 fmt::format("{:.0f}", point.throughput), fmt::format("{:.2f}", point.speedup),
                 percent(point.efficiency), std::string(name_of(point.basis))});
  }
  return columns.text();
}

std::string parts_table(const Prediction& prediction) {
  Columns columns;
  columns.row({"workers", "compute", "exposed", "waiting", "host", "input", "idle", "= step",
               "hidden", "host busy", "bound by"});
  for (const ResultPoint& point : prediction.points) {
    const Breakdown& parts = point.breakdown;
    columns.row({fmt::to_string(point.workers), ms(parts.compute), ms(parts.exposed),
                 ms(parts.waiting), ms(parts.host), ms(parts.input), ms(parts.idle),
                 ms(parts.step()), ms(parts.hidden), percent(point.host_busy),
                 point.host_bound ? "host" : "device"});
  }
  return columns.text();
}

std::string seconds(Time time) {
  return time > Time{} ? fmt::format("{:.1f}", time.seconds()) : "?";
}

/// What an epoch and the memory of a device come to; what no point knows is left out.
std::string epoch_table(const Prediction& prediction) {
  const auto& points = prediction.points;
  const bool epochs = std::ranges::any_of(
      points, [](const auto& point) { return point.epoch_without_input > Time{}; });
  const bool peaks =
      std::ranges::any_of(points, [](const auto& point) { return point.peak > Bytes{}; });
  if (!epochs) {
    if (!peaks) return "";
    const auto largest = std::ranges::max_element(points, {}, &ResultPoint::peak);
    return fmt::format("\nMost memory of a device: {}\n", to_string(largest->peak));
  }
  Columns columns;
  columns.row({"workers", "epoch", "with input", "memory"});
  for (const ResultPoint& point : points) {
    columns.row({fmt::to_string(point.workers), seconds(point.epoch_without_input),
                 seconds(point.epoch_with_input),
                 point.peak > Bytes{} ? to_string(point.peak) : "?"});
  }
  return "\nAn epoch, s, and the most memory of a device\n" + columns.text();
}

std::string shares_of(const std::vector<StalenessCount>& counts) {
  constexpr std::size_t kMost = 6;
  std::int64_t all = 0;
  for (const StalenessCount& count : counts) all += count.updates;
  std::string text;
  for (std::size_t i = 0; i < std::min(counts.size(), kMost); ++i) {
    text += fmt::format("{}{}: {}", i > 0 ? ", " : "", counts[i].staleness,
                        percent(static_cast<double>(counts[i].updates) /
                                static_cast<double>(std::max<std::int64_t>(1, all))));
  }
  return counts.size() > kMost ? text + ", ..." : text;
}

/// Staleness, and how busy the busiest server's link is.
std::string server_table(const Prediction& prediction) {
  Columns columns;
  columns.row({"workers", "mean", "most", "updates by staleness", "server in", "out"});
  bool any = false;
  for (const ResultPoint& point : prediction.points) {
    if (!point.servers) continue;
    any = true;
    const ServerStatistics& servers = *point.servers;
    double in = 0, out = 0;
    for (const ProcessTraffic& process : servers.traffic) {
      if (!process.process.starts_with("server")) continue;
      in = std::max(in, process.in_busy);
      out = std::max(out, process.out_busy);
    }
    const std::int64_t most = servers.staleness.empty() ? 0 : servers.staleness.back().staleness;
    columns.row({fmt::to_string(point.workers),
                 fmt::format("{:.2f}", mean_staleness(servers.staleness)), fmt::to_string(most),
                 shares_of(servers.staleness), percent(in), percent(out)});
  }
  return any ? "\nStaleness of updates, and how busy a server's link is each way\n" + columns.text()
             : "";
}

/// Quoted where a comma, quote or line break would end the field.
std::string field(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

std::string to_table(const Prediction& prediction) {
  return fmt::format(
      "{}\n{}, {} scaling, calibration {}\n\n{}\nWhere a step goes, ms (slowest worker)\n{}{}{}",
      prediction.scenario, prediction.model, prediction.weak ? "weak" : "strong",
      prediction.calibration, points_table(prediction), parts_table(prediction),
      server_table(prediction), epoch_table(prediction));
}

std::string to_csv(const Prediction& prediction) {
  std::string text =
      "scenario,model,calibration,scaling,workers,batch_per_worker,strategy,step_mean_ns,"
      "step_p10_ns,step_p50_ns,step_p90_ns,repeat,fit,drawn,basis,throughput,speedup,efficiency,"
      "compute_ns,exposed_ns,waiting_ns,host_ns,input_ns,idle_ns,hidden_ns,host_busy,host_bound,"
      "epoch_with_input_ns,epoch_without_input_ns,peak_bytes\n";
  for (const ResultPoint& point : prediction.points) {
    const Breakdown parts = in_whole_nanoseconds(point.breakdown);  // as in the JSON
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{:.6f},{:.6f},{:.6f},{},{:.3f},{:.6f},{:.6f},"
        "{},{},{},{},{},{},{},{:.6f},{},{},{},{}\n",
        field(prediction.scenario), field(prediction.model), field(prediction.calibration),
        prediction.weak ? "weak" : "strong", point.workers, point.batch_per_worker,
        field(point.strategy), point.step.mean.ns(), point.step.p10.ns(), point.step.p50.ns(),
        point.step.p90.ns(), point.uncertainty.repeat, point.uncertainty.fit,
        point.uncertainty.drawn, name_of(point.basis), point.throughput, point.speedup,
        point.efficiency, parts.compute.ns(), parts.exposed.ns(), parts.waiting.ns(),
        parts.host.ns(), parts.input.ns(), parts.idle.ns(), parts.hidden.ns(), point.host_busy,
        point.host_bound ? 1 : 0, point.epoch_with_input.ns(), point.epoch_without_input.ns(),
        point.peak.count);
  }
  return text;
}

}  // namespace lockstep
