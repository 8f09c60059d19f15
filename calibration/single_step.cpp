#include "calibration/single_step.h"

#include "sim/core/engine.h"
#include "sim/core/error.h"
#include "sim/core/units.h"
#include "sim/workload/strategy.h"

namespace lockstep {
namespace {

template <class F>
void for_each_cost(Profile& profile, F change) {
  for (Layer& layer : profile.layers) {
    change(layer.forward);
    change(layer.backward);
  }
  change(profile.optimizer);
  change(profile.step_overhead);
}

}  // namespace

Time simulated_single_step(const Profile& profile, bool cpu, int launch_queue) {
  constexpr std::uint32_t kIterations = 4;
  Workload workload;
  workload.profiles = {profile};
  workload.profile_of_worker = {0};
  workload.strategy.kind = "single";
  workload.cpu = cpu;
  workload.graph = profile.graph;
  workload.launch_queue = launch_queue;
  EngineOptions options;
  options.iterations = kIterations;
  const EngineResult result = run(compile(workload, Phase::steady), options);
  const auto& ends = result.step_end.at(0);
  return ends[kIterations - 1] - ends[kIterations - 2];
}

LaneTimes lane_times(const Profile& profile) {
  LaneTimes sum;
  Profile copy = profile;
  for_each_cost(copy, [&sum](const Cost& cost) {
    sum.host += cost.host;
    sum.device += cost.device;
  });
  return sum;
}

void scale_host(Profile& profile, double factor) {
  const Factor by = Factor::of(factor);
  for_each_cost(profile, [by](Cost& cost) { cost.host = scale(cost.host, by); });
}

void scale_device(Profile& profile, double factor) {
  const Factor by = Factor::of(factor);
  for_each_cost(profile, [by](Cost& cost) { cost.device = scale(cost.device, by); });
}

double fit_to_step(Profile& profile, Time step, bool cpu, int launch_queue) {
  constexpr int kRounds = 3;  // exact at once where one lane takes all the time; else converging
  constexpr double kMost = 2;
  if (step <= Time{}) return 0;
  const Profile measured = profile;
  const Time before = simulated_single_step(profile, cpu, launch_queue);
  double total = 1;
  for (int round = 0; round < kRounds; ++round) {
    const Time simulated = simulated_single_step(profile, cpu, launch_queue);
    const LaneTimes lanes = lane_times(profile);
    const bool host = !cpu && lanes.host > lanes.device;
    const Time lane = host ? lanes.host : lanes.device;
    if (lane <= Time{}) break;
    const double factor = 1 + (step - simulated).seconds() / lane.seconds();
    total *= factor;
    if (total > kMost || total < 1 / kMost) {
      profile = measured;
      break;
    }
    host ? scale_host(profile, factor) : scale_device(profile, factor);
  }
  return before.seconds() / step.seconds() - 1;
}

}  // namespace lockstep
