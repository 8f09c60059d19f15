#include "sim/scenario/step_time.h"

#include <fmt/core.h>

#include <cmath>

#include "sim/core/engine.h"
#include "sim/core/error.h"
#include "sim/workload/profile_choice.h"
#include "sim/workload/strategy.h"

namespace lockstep {
namespace {

/// Calls `body` with every time that the device takes.
template <class P, class F>
void for_each_device_time(P& profile, F body) {
  for (auto& layer : profile.layers) {
    body(layer.forward.device);
    body(layer.backward.device);
  }
  body(profile.optimizer.device);
  body(profile.step_overhead.device);
  body(profile.gradient_hook.device);
}

Profile scaled(Profile profile, double factor) {
  const Factor exact = Factor::of(factor);
  for_each_device_time(profile, [exact](Time& time) { time = scale(time, exact); });
  return profile;
}

/// What `single` takes, once the host runs as far ahead as it may.
Time single_step(const Profile& profile, const Scenario& scenario, const Calibration& calibration) {
  constexpr std::uint32_t kSettled = 8;
  Workload workload;
  workload.profiles = {profile};
  workload.profile_of_worker = {0};
  workload.strategy.kind = "single";
  workload.sync = scenario.sync;
  workload.graph = scenario.graph;
  workload.cpu = on_cpu(calibration);
  workload.launch_queue = calibration.launch_queue;
  EngineOptions options;
  options.iterations = kSettled;
  const EngineResult result = run(compile(workload, Phase::steady), options);
  const std::vector<Time>& ends = result.step_end.front();
  return ends.back() - ends[ends.size() - 2];
}

[[noreturn]] void reject(const StepTime& wanted, std::string_view why, std::string_view hint) {
  throw InputError(
      {}, "step_time",
      fmt::format("no profile takes {} at batch {}: {}", to_string(wanted.time), wanted.batch, why),
      hint);
}

/// A step never takes less than its device times, and grows at most as they do: from above, the
/// excess over them is taken away again and again. Device-bound, the first turn is exact.
Profile at_step_time(const Profile& shape, const StepTime& wanted, const Scenario& scenario,
                     const Calibration& calibration) {
  constexpr int kMostTurns = 200;
  constexpr double kClose = 1e-7;
  constexpr double kLargestFactor = 1e6;
  double device = 0;
  for_each_device_time(shape, [&device](const Time& time) { device += time.seconds(); });
  if (device <= 0) reject(wanted, "the calibrated one takes no time", "measure the model");
  double factor = wanted.time.seconds() / device;
  for (int turn = 0; turn < kMostTurns; ++turn) {
    if (factor <= 0) break;
    if (factor > kLargestFactor) reject(wanted, "a million times as calibrated", "check its unit");
    Profile profile = scaled(shape, factor);
    const Time step = single_step(profile, scenario, calibration);
    const double excess = (step - wanted.time).seconds();
    if (std::abs(excess) <= kClose * wanted.time.seconds()) {
      profile.batch = wanted.batch;
      profile.step = wanted.time;
      return profile;
    }
    factor -= excess / device;
  }
  reject(wanted, "launching it takes the calibrated host as long", "set graph: true");
}

}  // namespace

Calibration with_step_times(const Scenario& scenario, const Calibration& calibration) {
  Calibration result = calibration;
  std::erase_if(result.profiles, [&](const Profile& p) { return p.model == scenario.model; });
  for (const StepTime& wanted : scenario.step_times) {
    const ProfileChoice shape = choose_profile(calibration, {.model = scenario.model,
                                                             .precision = scenario.precision,
                                                             .batch = wanted.batch,
                                                             .graph = scenario.graph,
                                                             .beside = 1});
    Profile profile = at_step_time(shape.profile, wanted, scenario, calibration);
    profile.graph = scenario.graph;
    profile.beside = 1;
    result.profiles.push_back(std::move(profile));
  }
  return result;
}

}  // namespace lockstep
