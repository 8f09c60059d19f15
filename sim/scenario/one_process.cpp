#include "sim/scenario/one_process.h"

#include <fmt/core.h>

#include "sim/core/error.h"
#include "sim/scenario/collective_costs.h"
#include "sim/workload/profile_choice.h"

namespace lockstep {

void check_one_process(const Scenario& scenario, const Calibration& calibration, int workers) {
  const std::string& kind = scenario.strategy.kind;
  if (on_cpu(calibration)) {
    throw InputError(
        {}, "strategy.kind",
        fmt::format("{} drives GPUs, calibration '{}' is of cores", kind, calibration.id),
        "ddp runs on both");
  }
  if (scenario.graph) {
    throw InputError({}, "graph",
                     fmt::format("{} has a thread for each GPU: its step is no one graph", kind),
                     "set graph: false");
  }
  const int devices = devices_per_host(scenario.platform, workers);
  if (devices < workers) {
    throw InputError(
        {}, "platform",
        fmt::format("{} is one process on one host, {} workers are on several", kind, workers),
        fmt::format("hosts: {{devices: {}}}, or ddp", workers));
  }
  for (int rank = 0; rank < workers; ++rank) {
    if (batch_of(scenario, workers, rank) > 0) continue;
    const int share = batch_of(scenario, workers, 0);
    throw InputError(
        {}, "total_batch",
        fmt::format("in shares of {} nothing is left for worker {} of {}", share, rank, workers),
        fmt::format("a multiple of {}", workers));
  }
}

}  // namespace lockstep
