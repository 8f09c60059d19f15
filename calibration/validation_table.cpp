#include "calibration/validation_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "calibration/validate.h"

namespace lockstep {
namespace {

std::string note(const ValidationPoint& point) {
  std::string text;
  const auto add = [&text](const char* what) {
    text += (text.empty() ? "" : ", ") + std::string(what);
  };
  if (point.workers == 1) add("n = 1");
  if (!point.stable) add("unstable");
  if (!counts(point)) add("not averaged");
  if (point.host_bound) add("host-bound");
  if (point.sync == Sync::none) add("not synchronised");
  if (point.compute == Compute::replay && point.slow_motion > 1) {
    add(fmt::format("replayed {} times slower", point.slow_motion).c_str());
  } else if (point.compute == Compute::replay) {
    add("replayed");
  }
  if (point.hosts > 1) {
    const std::string link = point.link > Bandwidth{} ? " at " + to_string(point.link) : "";
    add((std::to_string(point.hosts) + " hosts" + link).c_str());
  }
  const std::size_t what = point.run.rfind(", ");  // of a run is compared, where not its step
  if (what != std::string::npos) add(point.run.substr(what + 2).c_str());
  if (point.basis == Basis::interpolated) add("interpolated");
  if (point.basis == Basis::extrapolated) add("extrapolated");
  return text;
}

std::string row(const ValidationPoint& p) {
  const bool step = p.bytes == Bytes{};
  const std::string band = p.in_band ? fmt::format("{:.0f} %", *p.in_band * 100) : "";
  return fmt::format(
      "  {:<14} {:>5} {:>3} {:<14} {:>10} {:>10} {:>10} {:>+7.1f} % {:>6.1f} % {:>6}  {}\n",
      step ? p.model : to_string(p.bytes), step ? std::to_string(p.batch_per_worker) : "",
      p.workers, p.strategy, to_string(p.predicted), to_string(p.measured_normalised),
      to_string(p.measured), p.error * 100, p.repeat_spread * 100, band, note(p));
}

std::string wanted_of(const ValidationGroup& group) {
  std::string text;
  const auto add = [&text](const char* what, const std::optional<double>& bound) {
    if (bound) text += fmt::format("{}{} {:.4g} %", text.empty() ? "" : ", ", what, *bound * 100);
  };
  add("mean", group.wanted_mean);
  if (group.allowed_mean) {
    text += fmt::format(" (or half a point's repeats: {:.1f} %)", *group.allowed_mean * 100);
  }
  add("worst", group.wanted_worst);
  return text.empty() ? "" : fmt::format("; wanted: {}: {}", text, held(group) ? "held" : "missed");
}

std::string band_of(const ValidationGroup& group) {
  const std::optional<double> share = in_band(group);
  return share ? fmt::format("; {:.0f} % of steps in the predicted p10 to p90", *share * 100) : "";
}

std::string heading(const ValidationGroup& group) {
  return fmt::format("{}: mean error {:.1f} %, worst {:.1f} % over {} points{}", group.name,
                     group.mean_error * 100, group.worst_error * 100,
                     std::ranges::count_if(group.points, counts), wanted_of(group));
}

constexpr double kExplain = 0.05;  // a miss beyond it wants its timelines compared

}  // namespace

std::string to_table(const Validation& validation) {
  std::string text =
      fmt::format("Predicted against measured, calibration {}\n", validation.calibration);
  bool misses = false;
  for (const ValidationGroup& group : validation.groups) {
    text += fmt::format("\n{}{}\n", heading(group), band_of(group));
    text += fmt::format("  {:<14} {:>5} {:>3} {:<14} {:>10} {:>10} {:>10} {:>9} {:>8} {:>6}\n",
                        "model", "batch", "n", "strategy", "predicted", "measured", "as it was",
                        "error", "repeats", "band");
    for (const ValidationPoint& point : group.points) text += row(point);
    const bool steps = std::ranges::any_of(
        group.points, [](const ValidationPoint& point) { return point.bytes == Bytes{}; });
    misses = misses || (steps && group.worst_error > kExplain);  // a collective has no timeline
  }
  text +=
      "\nmeasured: at the calibration's speed; repeats: their range; band: measured steps between "
      "the predicted p10 and p90.\n";
  if (misses) text += "Next: add --timelines to see where a step parts from its prediction.\n";
  return text;
}

std::string summary_table(const Validation& validation) {
  std::string text = "\nOver all visits\n";
  for (const ValidationGroup& group : validation.groups) {
    text += fmt::format("  {}\n", heading(group));
  }
  return text;
}

std::string bucket_table(const Calibration& calibration, const Run& run,
                         const PlatformOptions& platform) {
  if (run.sync == Sync::none) {
    const bool recorded =
        std::ranges::any_of(run.ranks, [](const RunRank& rank) { return !rank.buckets.empty(); });
    return recorded ? fmt::format(
                          "\n{}: no buckets: they were recorded in synchronised steps, the "
                          "prediction is of others\n",
                          run.id)
                    : "";
  }
  const std::vector<BucketComparison> buckets = compare_buckets(calibration, run, platform);
  if (buckets.empty()) return "";
  std::string text = fmt::format(
      "\n{}: buckets, predicted | measured | difference of their shares of the step\n"
      "  measured in steps of their own, not in those that were timed\n",
      run.id);
  text += fmt::format("  {:>3} {:>10} {:>32} {:>32} {:>32}\n", "", "bytes", "ready", "launched",
                      "done");
  const auto cell = [](const BucketComparison& of, Time predicted, Time measured) {
    return fmt::format("{:>10} |{:>10} |{:>+6.1f} %", to_string(predicted), to_string(measured),
                       share_later(of, predicted, measured) * 100);
  };
  for (const BucketComparison& one : buckets) {
    const auto& [predicted, measured] = std::tie(one.predicted, one.measured);
    text += fmt::format("  {:>3} {:>10} {:>32} {:>32} {:>32}\n", one.bucket,
                        to_string(measured.bytes), cell(one, predicted.ready, measured.ready),
                        cell(one, predicted.launch, measured.launch),
                        cell(one, predicted.done, measured.done));
  }
  return text;
}

}  // namespace lockstep
