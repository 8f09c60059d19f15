#include "runner/measure/visit.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runner/measure/clock.h"
#include "runner/measure/configuration.h"
#include "runner/measure/machine.h"
#include "runner/measure/parity.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

constexpr Moment kSecond = 1'000'000'000;
constexpr int kParityBatch = 4;  // per worker: what is checked does not depend on it

bool wants(const MeasureOptions& options, const std::string& strategy) {
  return std::ranges::find(options.strategies, strategy) != options.strategies.end();
}

/// Before a strategy is timed, it is checked: in the first repeat, for all of them.
std::optional<Parity> check(Worker& worker, const std::string& model) {
  const bool shared = worker.size() > 1 && wants(worker.options, "ddp");
  if (!shared || worker.options.repeat > 0) return std::nullopt;
  worker.progress.say("", fmt::format("{}: checking ddp against one device", model));
  const Parity parity = check_parity(model, {.kind = "ddp"}, kParityBatch, worker.options.seed,
                                     *worker.communicator, *worker.device);
  if (!(parity.relative_l2 <= kParityBound)) {
    throw RunError(
        fmt::format("parity: ddp on {} workers trains {} away from one device by {:.1e} "
                    "of a step, in {} steps; {:.0e} is allowed",
                    worker.size(), model, parity.relative_l2, parity.steps, kParityBound));
  }
  return parity;
}

}  // namespace

void measure_all(Worker& worker) {
  const MeasureOptions& options = worker.options;
  const Moment begin = host_now();
  const Moment budget = options.budget_seconds * kSecond / options.repeats;
  measure_machine(worker);
  worker.save();
  const auto samples = std::accumulate(options.batches.begin(), options.batches.end(), Moment{0});
  Moment left = samples * static_cast<Moment>(options.models.size());
  for (const std::string& model : options.models) {
    const auto parity = check(worker, model);
    for (const int batch : options.batches) {
      // By batch; what small models leave of their share goes to the larger ones.
      const Moment remaining = std::max<Moment>(kSecond, begin + budget - host_now());
      const Moment share = budget == 0 ? 0 : remaining / left * batch;
      left -= batch;
      measure_configuration(worker, {.model = model,
                                     .batch = batch,
                                     .single = wants(options, "single"),
                                     .ddp = wants(options, "ddp") && worker.size() > 1,
                                     .parity = parity,
                                     .budget = worker.agree(share)});
      worker.save();
    }
  }
  worker.barrier();
}

}  // namespace lockstep::runner
