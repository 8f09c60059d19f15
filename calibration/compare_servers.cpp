#include "calibration/compare_servers.h"

#include <fmt/core.h>

#include <set>
#include <vector>

#include "calibration/validate.h"
#include "sim/simulate.h"

namespace lockstep {
namespace {

double share(const std::vector<StalenessCount>& counts, std::int64_t staleness) {
  double these = 0, all = 0;
  for (const StalenessCount& count : counts) {
    all += static_cast<double>(count.updates);
    if (count.staleness == staleness) these += static_cast<double>(count.updates);
  }
  return all > 0 ? 100 * these / all : 0;
}

}  // namespace

std::string compare_servers(const Calibration& calibration, const Run& run,
                            const PlatformOptions& platform) {
  if (!run.servers || run.failure) return "";
  const ResultPoint point = simulate(scenario_of(run, platform), calibration, 1).points.at(0);
  if (!point.servers) return "";
  const ServerStatistics &predicted = *point.servers, &measured = *run.servers;
  std::string text = fmt::format(
      "\n{}: servers, predicted | measured\n  {:>16} {:>9.1f} |{:>9.1f}\n  {:>16} {:>9.2f} "
      "|{:>9.2f}"
      "\n",
      run.id, "samples/s", predicted.throughput, measured.throughput, "mean staleness",
      mean_staleness(predicted.staleness), mean_staleness(measured.staleness));
  std::set<std::int64_t> seen;
  for (const auto* counts : {&predicted.staleness, &measured.staleness}) {
    for (const StalenessCount& count : *counts) seen.insert(count.staleness);
  }
  for (const std::int64_t staleness : seen) {
    text += fmt::format(
        "  {:>16} {:>7.1f} % |{:>7.1f} %\n", fmt::format("updates {} behind", staleness),
        share(predicted.staleness, staleness), share(measured.staleness, staleness));
  }
  return text;
}

}  // namespace lockstep
