#include "calibration/fit_profiles.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "calibration/host_speeds.h"
#include "calibration/profile_groups.h"
#include "calibration/robust.h"
#include "calibration/single_step.h"
#include "sim/core/error.h"

namespace lockstep {
namespace {

std::string name_of(const Profile& profile) {
  return fmt::format("{} at batch {}{}{}{}", profile.model, profile.batch,
                     profile.precision == "fp32" ? "" : " in " + profile.precision,
                     profile.graph ? " as a graph" : "",
                     profile.beside > 1 ? fmt::format(", {} beside", profile.beside) : "");
}

/// Every time of the profile, in a fixed order.
std::vector<Time*> times_of(Profile& profile) {
  std::vector<Time*> times;
  const auto add = [&](Cost& cost) {
    times.push_back(&cost.host);
    times.push_back(&cost.device);
  };
  for (Layer& layer : profile.layers) {
    add(layer.forward);
    add(layer.backward);
  }
  add(profile.optimizer);
  add(profile.step_overhead);
  add(profile.gradient_hook);
  times.push_back(&profile.input_load);
  times.push_back(&profile.input_copy);
  times.push_back(&profile.step);
  return times;
}

/// The sample at the calibration's speed. Where cores compute, its layers are scaled to its own
/// unprofiled steps: both come from one block, in which the machine hardly drifted.
Profile at_equal_speed(const ProfileSample& sample, const Speed& speed) {
  Profile profile = sample.profile;
  for (Time* time : times_of(profile)) *time = speed.normalised(*time, sample.speed_index);
  profile.step = speed.normalised(median_step(sample), sample.speed_index);
  if (speed.drifts()) fit_to_step(profile, profile.step, true, 0);
  return profile;
}

void check_same_layers(const Profile& a, const Profile& b) {
  const auto same = [](const Layer& x, const Layer& y) {
    return x.name == y.name && x.kind == y.kind && x.parameters.size() == y.parameters.size();
  };
  if (!std::equal(a.layers.begin(), a.layers.end(), b.layers.begin(), b.layers.end(), same)) {
    throw InputError({}, name_of(a), "processes list different layers",
                     "measure all of a visit with one version of lockstep-measure");
  }
}

Profile median_profile(std::vector<Profile> profiles) {
  Profile result = profiles.front();
  std::vector<std::vector<Time>> samples(times_of(result).size());
  for (Profile& profile : profiles) {
    check_same_layers(result, profile);
    const std::vector<Time*> times = times_of(profile);
    for (std::size_t i = 0; i < times.size(); ++i) samples[i].push_back(*times[i]);
    result.peak = std::max(result.peak, profile.peak);
  }
  const std::vector<Time*> times = times_of(result);
  for (std::size_t i = 0; i < times.size(); ++i) *times[i] = median(std::move(samples[i]));
  return result;
}

using SampleList = std::vector<const ProfileSample*>;

/// Device times of the slowest card: the median of each card over processes, then the card whose
/// layers take longest.
Profile slowest_device(const SampleList& samples, const Speed& speed) {
  std::map<int, std::vector<Profile>> of_rank;
  for (const ProfileSample* sample : samples) {
    of_rank[sample->rank].push_back(at_equal_speed(*sample, speed));
  }
  std::vector<Profile> ranks;
  for (auto& [rank, profiles] : of_rank) ranks.push_back(median_profile(std::move(profiles)));
  return *std::ranges::max_element(ranks, {},
                                   [](const Profile& p) { return lane_times(p).device; });
}

/// The share of a step beyond which the host decides how long it is.
constexpr double kHostBound = 0.9;

bool issues_most_of_its_step(const Profile& profile) {
  return lane_times(profile).host.seconds() >= kHostBound * profile.step.seconds();
}

/// How the hosts of the ranks differ. Where the host bounds the step, its steps tell it best, since
/// they are timed all along beside the runs; elsewhere what issuing a step takes.
std::vector<double> host_of_rank(const SampleList& samples, bool host_bound) {
  std::vector<HostTimes> hosts;
  for (const ProfileSample* sample : samples) {
    const bool steps = host_bound && !sample->steps.empty();
    const Time once = host_bound ? sample->profile.step : lane_times(sample->profile).host;
    hosts.push_back({.process = sample->process,
                     .rank = sample->rank,
                     .times = steps ? sample->steps : std::vector<Time>{once}});
  }
  return hosts_of_ranks(hosts);
}

/// Layers on the device as the slowest card has them, on the host as they are in the median; how
/// the hosts of the ranks differ stands apart.
Profile on_gpus(const SampleList& samples, const Speed& speed) {
  std::vector<Profile> profiles;
  for (const ProfileSample* sample : samples) profiles.push_back(at_equal_speed(*sample, speed));
  Profile profile = median_profile(std::move(profiles));
  const Profile device = slowest_device(samples, speed);
  for (std::size_t i = 0; i < profile.layers.size(); ++i) {
    profile.layers[i].forward.device = device.layers[i].forward.device;
    profile.layers[i].backward.device = device.layers[i].backward.device;
  }
  profile.optimizer.device = device.optimizer.device;
  profile.step_overhead.device = device.step_overhead.device;
  profile.gradient_hook.device = device.gradient_hook.device;
  profile.device = device.device;
  const bool host_bound = issues_most_of_its_step(profile);
  if (!host_bound) profile.step = device.step;
  if (!profile.graph) profile.host_of_rank = host_of_rank(samples, host_bound);
  return profile;
}

/// Cores are alike once their speed is taken out: ranks count as more samples.
Profile on_cores(const SampleList& samples, const Speed& speed) {
  std::vector<Profile> profiles;
  for (const ProfileSample* sample : samples) profiles.push_back(at_equal_speed(*sample, speed));
  return median_profile(std::move(profiles));
}

/// Medians of the steps of each process and rank, at equal speed, as logarithms of seconds.
std::vector<double> log_medians(const SampleList& samples, const Speed& speed) {
  std::vector<double> logs;
  for (const ProfileSample* sample : samples) {
    const Time step = speed.normalised(median_step(*sample), sample->speed_index);
    if (step > Time{}) logs.push_back(std::log(step.seconds()));
  }
  return logs;
}

/// Ranks apart: how cards differ is no noise.
std::vector<std::vector<double>> log_medians_by_rank(const SampleList& samples,
                                                     const Speed& speed) {
  std::map<int, SampleList> of_rank;
  for (const ProfileSample* sample : samples) of_rank[sample->rank].push_back(sample);
  std::vector<std::vector<double>> groups;
  for (const auto& [rank, list] : of_rank) groups.push_back(log_medians(list, speed));
  return groups;
}

/// Raw steps, each with the one after it, as logarithms. Neighbours tell noise from drift, which is
/// slow, and slows all workers of a machine alike.
void add_neighbours(const ProfileSample& sample, std::vector<std::vector<double>>& pairs) {
  for (std::size_t i = 1; i < sample.steps.size(); ++i) {
    const Time one = sample.steps[i - 1], next = sample.steps[i];
    if (one <= Time{} || next <= Time{}) continue;
    pairs.push_back({std::log(one.seconds()), std::log(next.seconds())});
  }
}

Profile fit_group(const SampleList& samples, const Speed& speed, int launch_queue,
                  std::vector<Fit>& fits) {
  const bool cpu = speed.drifts();
  Profile profile = cpu ? on_cores(samples, speed) : on_gpus(samples, speed);
  std::vector<double> overheads;
  std::vector<std::vector<double>> neighbours;
  for (const ProfileSample* sample : samples) {
    Profile raw = sample->profile;
    overheads.push_back(fit_to_step(raw, median_step(*sample), cpu, launch_queue));
    add_neighbours(*sample, neighbours);
  }
  fit_to_step(profile, profile.step, cpu, launch_queue);
  profile.spread_between_processes = pairwise_sigma(log_medians_by_rank(samples, speed));
  profile.spread_between_steps = pairwise_sigma(neighbours);

  const int count = static_cast<int>(samples.size());
  const Time simulated = simulated_single_step(profile, cpu, launch_queue);
  const double left =
      profile.step > Time{} ? std::abs(simulated.seconds() / profile.step.seconds() - 1) : 0;
  const double of_median = profile.spread_between_processes / std::sqrt(count);
  fits.push_back({"profile of " + name_of(profile), std::hypot(left, of_median), count});
  fits.push_back({"measuring " + name_of(profile) + ": layers together against the unprofiled step",
                  median(std::move(overheads)), count});
  return profile;
}

/// Of a step that waits for its device, how the hosts of the ranks differ shows in the one step
/// that was profiled in each process. The same cores issue the same work at other batches, and
/// where steps wait for that, all of them tell.
void take_hosts_of_bound_steps(std::vector<Profile>& profiles) {
  const auto told = [](const Profile& profile) {
    return !profile.host_of_rank.empty() && issues_most_of_its_step(profile);
  };
  for (Profile& profile : profiles) {
    if (profile.host_of_rank.empty() || told(profile)) continue;
    const auto bound = std::ranges::find_if(profiles, [&](const Profile& other) {
      return told(other) && other.model == profile.model && other.beside == profile.beside;
    });
    if (bound != profiles.end()) profile.host_of_rank = bound->host_of_rank;
  }
}

}  // namespace

std::vector<Profile> fit_profiles(const std::vector<ProfileSample>& samples, const Speed& speed,
                                  int launch_queue, std::vector<Fit>& fits) {
  std::vector<Profile> profiles;
  for (const auto& [key, group] : by_key(samples)) {
    profiles.push_back(fit_group(group, speed, launch_queue, fits));
  }
  take_hosts_of_bound_steps(profiles);
  return profiles;
}

Noise fit_noise(const std::vector<ProfileSample>& samples, const Speed& speed) {
  std::vector<std::vector<double>> processes, neighbours;
  for (const auto& [key, group] : by_key(samples)) {
    for (auto& logs : log_medians_by_rank(group, speed)) processes.push_back(std::move(logs));
    for (const ProfileSample* sample : group) add_neighbours(*sample, neighbours);
  }
  return {.process = pairwise_sigma(processes), .step = pairwise_sigma(neighbours), .task = 0};
}

}  // namespace lockstep
