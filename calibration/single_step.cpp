#include "calibration/single_step.h"

#include "sim/core/engine.h"
#include "sim/core/error.h"
#include "sim/core/units.h"
#include "sim/workload/strategy.h"

namespace lockstep {
namespace {

constexpr double kMost = 2;  // a larger correction, either way, is none

/// The steps that a profile has with its host times scaled; they grow with the factor.
class HostFit {
 public:
  HostFit(const Profile& profile, int launch_queue)
      : profile_(profile), launch_queue_(launch_queue) {}

  Profile scaled(double factor) const {
    Profile profile = profile_;
    scale_host(profile, factor);
    return profile;
  }
  Time step(double factor) const {
    return simulated_single_step(scaled(factor), false, launch_queue_);
  }

 private:
  const Profile& profile_;
  int launch_queue_;
};

/// Halves the range of factors until it is below a thousandth. False where the device bounds the
/// step whatever the host does.
bool fit_host(Profile& profile, Time step, int launch_queue) {
  constexpr int kHalvings = 11;
  const HostFit fit(profile, launch_queue);
  double low = 1 / kMost, high = kMost;
  if (fit.step(low) >= step || fit.step(high) <= step) return false;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (fit.step(middle) < step ? low : high) = middle;
  }
  profile = fit.scaled((low + high) / 2);
  return true;
}

void fit_device(Profile& profile, Time step, bool cpu, int launch_queue) {
  constexpr int kRounds = 3;  // exact at once where the device takes all the time; else converging
  const Profile measured = profile;
  double total = 1;
  for (int round = 0; round < kRounds; ++round) {
    const Time device = lane_times(profile).device;
    if (device <= Time{}) return;
    const Time simulated = simulated_single_step(profile, cpu, launch_queue);
    const double factor = 1 + (step - simulated).seconds() / device.seconds();
    total *= factor;
    if (total > kMost || total < 1 / kMost) {
      profile = measured;
      return;
    }
    scale_device(profile, factor);
  }
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
  if (step <= Time{}) return 0;
  const Time before = simulated_single_step(profile, cpu, launch_queue);
  const bool eager = !cpu && !profile.graph;
  if (!eager || !fit_host(profile, step, launch_queue)) {
    fit_device(profile, step, cpu, launch_queue);
  }
  return before.seconds() / step.seconds() - 1;
}

}  // namespace lockstep
