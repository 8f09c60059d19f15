#include "sim/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "sim/core/error.h"
#include "sim/scenario/devices.h"
#include "sim/simulate.h"
#include "sim/workload/profile_choice.h"

namespace lockstep {
namespace {

/// Stragglers as constant as their means.
Straggler at_mean(Straggler straggler) {
  const auto times = [](Factor factor, double by) { return Factor::of(factor.value() * by); };
  straggler.slowdown = times(straggler.slowdown, mean(straggler.slowdown_varies));
  const Variability& delay = straggler.delay_varies;
  if (!by_clock(delay)) straggler.delay = scale(straggler.delay, Factor::of(mean(delay)));
  straggler.slowdown_varies = {};
  if (!by_clock(delay)) straggler.delay_varies = {};
  return straggler;
}

/// Everybody as fast as on average, in all steps alike.
Scenario at_means(Scenario scenario) {
  scenario.noise = false;
  for (Straggler& straggler : scenario.stragglers) straggler = at_mean(straggler);
  return scenario;
}

std::string name_of(const Calibration& costs) {
  const Machine& machine = costs.origin.machine;
  if (!machine.gpus.empty()) return machine.gpus.front().name;
  return machine.cpu.empty() ? costs.id : machine.cpu;
}

int workers_of_host(const Scenario& scenario, int workers) {
  return scenario.devices.empty() ? workers : devices_on_host(scenario);
}

Scenario with_shares(Scenario scenario, std::vector<int> shares) {
  scenario.strategy.split = std::move(shares);
  scenario.split_measured = false;
  return scenario;
}

/// Ranks [first, first + count) of each host are no more; the others move up.
std::vector<Straggler> renumbered(const std::vector<Straggler>& stragglers, int each, int first,
                                  int count) {
  std::vector<Straggler> left;
  for (Straggler straggler : stragglers) {
    if (straggler.worker != kEveryWorker) {
      const int host = straggler.worker / each, place = straggler.worker % each;
      if (place >= first && place < first + count) continue;
      straggler.worker = host * (each - count) + place - (place > first ? count : 0);
    }
    left.push_back(straggler);
  }
  return left;
}

bool cores_among_gpus(const Scenario& scenario) {
  const auto cores = [](const DeviceClass& devices) { return on_cpu(*devices.costs); };
  return std::ranges::any_of(scenario.devices, cores) &&
         !std::ranges::all_of(scenario.devices, cores);
}

/// A scenario of fewer workers, and the costs of one of them that works alone.
struct Fewer {
  std::string without;
  Scenario scenario;
  const Calibration* costs = nullptr;
};

Fewer without_class(const Scenario& scenario, const Calibration& main, int workers,
                    std::size_t left_out) {
  const int each = devices_on_host(scenario);
  const DeviceClass& gone = scenario.devices[left_out];
  int first = 0;
  for (std::size_t i = 0; i < left_out; ++i) first += scenario.devices[i].count;
  Fewer fewer{.without = fmt::format("{} of {}", gone.count, name_of(*gone.costs)),
              .scenario = scenario,
              .costs = &main};
  Scenario& left = fewer.scenario;
  left.devices.erase(left.devices.begin() + static_cast<std::ptrdiff_t>(left_out));
  left.stragglers = renumbered(scenario.stragglers, each, first, gone.count);
  left.workers = {workers / each * (each - gone.count)};
  left.platform.devices_per_host = each - gone.count;
  left.strategy.combine_on_host = false;
  if (left.devices.size() == 1) {  // all of one kind
    fewer.costs = scenario.devices[left_out == 0 ? 1 : 0].costs.get();
    left.devices.clear();
    if (on_cpu(*fewer.costs) && left.precision == "tf32") left.precision = "fp32";
  } else if (cores_among_gpus(left)) {
    left.strategy.combine_on_host = scenario.strategy.combine_on_host;
  }
  return fewer;
}

Fewer without_worker(const Scenario& scenario, const Calibration& main, int workers, int rank) {
  Fewer fewer{.without = fmt::format("worker {}", rank), .scenario = scenario, .costs = &main};
  fewer.scenario.stragglers = renumbered(scenario.stragglers, workers, rank, 1);
  fewer.scenario.workers = {workers - 1};
  return fewer;
}

/// All that can be left out: each kind of devices, or of workers that are alike the slowest.
std::vector<Fewer> fewer_workers(const Scenario& scenario, const Calibration& main, int workers,
                                 const std::vector<int>& best) {
  std::vector<Fewer> all;
  if (scenario.devices.empty()) {
    const auto slowest = std::ranges::min_element(best) - best.begin();
    all.push_back(without_worker(scenario, main, workers, static_cast<int>(slowest)));
    return all;
  }
  for (std::size_t i = 0; scenario.devices.size() > 1 && i < scenario.devices.size(); ++i) {
    all.push_back(without_class(scenario, main, workers, i));
  }
  return all;
}

SplitChoice choice_of(const Fewer& fewer) {
  SplitChoice choice;
  choice.without = fewer.without;
  choice.workers = fewer.scenario.workers.front();
  Scenario scenario = fewer.scenario;
  if (choice.workers > 1) {
    const DeviceTimes times(scenario, *fewer.costs, choice.workers);
    choice.shares = best_split(times.samples(), times.devices(), times);
    scenario = with_shares(scenario, choice.shares);
  } else {
    choice.shares = {scenario.total_batch.value_or(0)};
  }
  choice.point = simulate(scenario, *fewer.costs).points.front();
  return choice;
}

/// The first size, up to what any model has, from which on the other way is the faster one.
std::optional<Bytes> overtaking(const Scenario& scenario, const Calibration& main, int workers) {
  constexpr std::int64_t kLeast = 1024, kMost = std::int64_t{1} << 30;
  const auto host_wins = [&](std::int64_t bytes) {
    Scenario either = scenario;
    either.strategy.combine_on_host = true;
    const Time host = combine_time(either, main, workers, Bytes{bytes});
    either.strategy.combine_on_host = false;
    return host < combine_time(either, main, workers, Bytes{bytes});
  };
  const bool first = host_wins(kLeast);
  std::int64_t low = kLeast, high = kLeast;
  while (high < kMost && host_wins(high) == first) {
    low = high;
    high *= 2;
  }
  if (host_wins(high) == first) return std::nullopt;
  constexpr std::int64_t kExact = 4;  // an element
  while (high - low > kExact) {
    const std::int64_t middle = low + (high - low) / 2;
    (host_wins(middle) == first ? low : high) = middle;
  }
  return Bytes{high};
}

std::vector<std::string> device_names(const Scenario& scenario, int each) {
  std::vector<std::string> names;
  for (int rank = 0; rank < each; ++rank) {
    std::string name = fmt::format("worker {}", rank);
    if (!scenario.devices.empty()) {
      name = name_of(*scenario.devices[device_place(scenario, rank).device_class].costs);
    }
    names.push_back(std::move(name));
  }
  return names;
}

void compare_ways(const Scenario& scenario, const Calibration& main, SplitAnswer& answer) {
  if (!cores_among_gpus(scenario)) return;
  const ProfileQuery query{.model = scenario.model,
                           .precision = scenario.precision,
                           .batch = 1,
                           .graph = scenario.graph,
                           .beside = 1};
  const Bytes bytes = parameter_bytes(choose_profile(main, query).profile);
  Scenario either = scenario;
  either.strategy.combine_on_host = false;
  answer.combine.emplace();
  answer.combine->on_device = combine_time(either, main, answer.workers, bytes);
  either.strategy.combine_on_host = true;
  answer.combine->on_host = combine_time(either, main, answer.workers, bytes);
  answer.overtakes = overtaking(scenario, main, answer.workers);
}

}  // namespace

DeviceTimes::DeviceTimes(const Scenario& scenario, const Calibration& calibration, int workers)
    : scenario_(scenario),
      calibration_(calibration),
      devices_(static_cast<std::size_t>(workers_of_host(scenario, workers))),
      samples_(scenario.total_batch.value_or(0) / (workers / workers_of_host(scenario, workers))) {}

Time DeviceTimes::operator()(std::size_t device, int samples) const {
  const auto [entry, added] = known_.try_emplace({device, samples});
  if (added) entry->second = simulated(device, samples);
  return entry->second;
}

Time DeviceTimes::simulated(std::size_t device, int samples) const {
  constexpr int kFew = 8;
  const int rank = static_cast<int>(device);
  const bool unlike = !scenario_.devices.empty();
  const Calibration& costs = costs_of(scenario_, calibration_, std::max(2, rank + 2), rank);
  Scenario alone = at_means(scenario_);
  alone.devices.clear();
  alone.strategy = {.kind = "single"};
  alone.workers = {1};
  alone.total_batch = samples;
  alone.dataset.reset();
  alone.iterations = kFew;
  alone.split_measured = false;
  if (unlike && on_cpu(costs) && alone.precision == "tf32") alone.precision = "fp32";
  alone.stragglers.clear();
  for (const Straggler& straggler : scenario_.stragglers) {
    if (!applies_to(straggler, rank)) continue;
    alone.stragglers.push_back(at_mean(straggler));
    alone.stragglers.back().worker = 0;
  }
  const Time step = simulate(alone, costs, 1).points.front().step.mean;
  if (!unlike) return step;
  const ProfileQuery query{.model = alone.model,
                           .precision = alone.precision,
                           .batch = samples,
                           .graph = alone.graph,
                           .beside = 1};
  const Bytes bytes = parameter_bytes(choose_profile(costs, query).profile);
  const UnlikeWorker part = unlike_worker(scenario_, calibration_, rank, bytes);
  return step + part.to_sum.device + part.from_sum.device;
}

Scenario with_split(const Scenario& scenario, const Calibration& calibration, int workers) {
  if (!scenario.split_measured || workers == 1) return scenario;
  const DeviceTimes times(scenario, calibration, workers);
  return with_shares(scenario, balance(times.samples(), times.devices(), times).back().shares);
}

SplitAnswer find_split(const Scenario& scenario, const Calibration& calibration) {
  constexpr int kEnough = 400;  // steps, for the mean of what varies
  SplitAnswer answer;
  answer.workers = std::ranges::max(scenario.workers);
  if (scenario.strategy.kind != "heterogeneous" || answer.workers < 2) {
    throw InputError({}, "strategy.kind", "a split is between several workers of heterogeneous",
                     "strategy: {kind: heterogeneous}, workers: [3]");
  }
  const DeviceTimes times(scenario, calibration, answer.workers);
  answer.samples = times.samples();
  answer.devices = device_names(scenario, static_cast<int>(times.devices()));
  answer.rounds = balance(times.samples(), times.devices(), times);
  answer.best.shares = best_split(times.samples(), times.devices(), times);
  for (std::size_t i = 0; i < times.devices(); ++i) {
    answer.best.times.push_back(times(i, answer.best.shares[i]));
  }
  Fewer all{.without = "", .scenario = scenario, .costs = &calibration};
  all.scenario.workers = {answer.workers};
  all.scenario.iterations = std::max(scenario.iterations, kEnough);
  answer.choices.push_back(choice_of(all));
  answer.varying = answer.choices.front().point.step.mean;
  const Scenario steady = at_means(with_shares(all.scenario, answer.best.shares));
  answer.steady = simulate(steady, calibration).points.front().step.mean;
  for (const Fewer& fewer :
       fewer_workers(scenario, calibration, answer.workers, answer.best.shares)) {
    answer.choices.push_back(choice_of(fewer));
  }
  compare_ways(scenario, calibration, answer);
  return answer;
}

}  // namespace lockstep
