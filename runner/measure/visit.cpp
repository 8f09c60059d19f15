#include "runner/measure/visit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "runner/measure/clock.h"
#include "runner/measure/configuration.h"
#include "runner/measure/machine.h"
#include "runner/measure/parity.h"
#include "sim/core/error.h"
#include "sim/workload/profile_choice.h"

namespace lockstep::runner {

namespace {

constexpr Moment kSecond = 1'000'000'000;
constexpr int kParityBatch = 4;  // per worker: what is checked does not depend on it

bool wants(const MeasureOptions& options, const std::string& strategy) {
  return std::ranges::find(options.strategies, strategy) != options.strategies.end();
}

/// The ones that take several workers, with their options.
std::vector<StrategyOptions> shared_strategies(const Worker& worker) {
  std::vector<StrategyOptions> shared;
  if (worker.size() == 1) return shared;
  for (const std::string& kind : worker.options.strategies) {
    if (kind == "single") continue;
    StrategyOptions strategy;
    if (kind == "ddp") strategy = worker.options.buckets;
    strategy.kind = kind;
    shared.push_back(strategy);
  }
  return shared;
}

/// Before a strategy is timed, it is checked: in the first repeat, for all of them.
Parity check(Worker& worker, const std::string& model, const StrategyOptions& strategy) {
  worker.progress.say("", fmt::format("{}: checking {} against one device", model, strategy.kind));
  const Parity parity =
      check_parity(model, strategy, kParityBatch, worker.options.seed, *worker.communicator,
                   *worker.device, [&worker] { worker.progress.beat(); });
  if (!(parity.relative_l2 <= kParityBound)) {
    throw RunError(fmt::format(
        "parity: {} on {} workers trains {} away from one device by {:.1e} "
        "of a step, in {} steps; {:.0e} is allowed",
        strategy.kind, worker.size(), model, parity.relative_l2, parity.steps, kParityBound));
  }
  return parity;
}

std::map<std::string, Parity> check_all(Worker& worker, const std::string& model) {
  std::map<std::string, Parity> parity;
  if (worker.options.repeat > 0 || worker.replays()) return parity;
  for (const StrategyOptions& strategy : shared_strategies(worker)) {
    parity[strategy.kind] = check(worker, model, strategy);
  }
  return parity;
}

/// What a worker of this model at this batch waits for, `beside` workers on its host.
std::optional<Profile> replayed(const Worker& worker, const std::string& model, int batch,
                                int beside) {
  if (!worker.replays()) return std::nullopt;
  return profile_to_replay(*worker.calibration, model, batch, beside);
}

}  // namespace

Profile profile_to_replay(const Calibration& calibration, const std::string& model, int batch,
                          int beside) {
  return choose_profile(calibration, {.model = model, .batch = batch, .beside = beside}).profile;
}

void measure_all(Worker& worker) {
  const MeasureOptions& options = worker.options;
  if (options.only_collectives) {
    measure_collectives(worker);
    worker.save();
    worker.barrier();
    return;
  }
  const Moment begin = host_now();
  const Moment budget = options.budget_seconds * kSecond / options.repeats;
  const int together = worker.environment.local_size;
  if (!worker.calibration) measure_machine(worker);
  worker.save();
  const auto samples = std::accumulate(options.batches.begin(), options.batches.end(), Moment{0});
  Moment left = samples * static_cast<Moment>(options.models.size());
  for (const std::string& model : options.models) {
    const auto parity = check_all(worker, model);
    for (const int batch : options.batches) {
      // By batch; what small models leave of their share goes to the larger ones.
      const Moment remaining = std::max<Moment>(kSecond, begin + budget - host_now());
      const Moment share = budget == 0 ? 0 : remaining / left * batch;
      left -= batch;
      measure_configuration(worker, {.model = model,
                                     .batch = batch,
                                     .single = wants(options, "single"),
                                     .shared = shared_strategies(worker),
                                     .parity = parity,
                                     .replay = replayed(worker, model, batch, together),
                                     .replay_alone = replayed(worker, model, batch, 1),
                                     .budget = worker.agree(share)});
      worker.save();
    }
  }
  worker.barrier();
}

}  // namespace lockstep::runner
