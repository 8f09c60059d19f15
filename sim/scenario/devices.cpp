// Workers of several kinds on each host: the strategy heterogeneous.
#include "sim/scenario/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "sim/core/error.h"
#include "sim/scenario/collective_costs.h"
#include "sim/scenario/parts.h"
#include "sim/workload/profile_choice.h"

namespace lockstep {
namespace {

constexpr std::size_t kMostClasses = 16;

[[noreturn]] void refuse(const Scenario& scenario, const std::string& key, const std::string& what,
                         const std::string& hint = "") {
  throw InputError(place_of(scenario, key), key, what, hint);
}

/// Workers of a host, and hosts.
struct Shape {
  int each = 1, hosts = 1;
};

Shape shape_of(const Scenario& scenario, int workers) {
  const int each = scenario.devices.empty() ? workers : devices_on_host(scenario);
  return {.each = each, .hosts = workers / each};
}

void check_shares(const Scenario& scenario, int workers, const Shape& shape) {
  const std::vector<int>& split = scenario.strategy.split;
  if (split.empty()) return;
  if (std::ssize(split) != shape.each) {
    refuse(scenario, "strategy.split",
           fmt::format("{} shares for the {} workers of a host", split.size(), shape.each),
           "one for each");
  }
  const int wanted = scenario.total_batch.value_or(0) / shape.hosts;
  const int sum = std::accumulate(split.begin(), split.end(), 0);
  if (sum == wanted) return;
  refuse(scenario, "strategy.split",
         fmt::format("{} add up to {}, a host{} has {} samples", fmt::join(split, " + "), sum,
                     shape.hosts > 1 ? fmt::format(" of {}", workers / shape.each) : "", wanted),
         "shares that add up to it, or split: measured");
}

void check_workers(const Scenario& scenario, int workers) {
  if (workers == 1) return;
  const Shape shape = shape_of(scenario, workers);
  if (workers % shape.each != 0) {
    refuse(scenario, "workers",
           fmt::format("{} workers are no whole hosts of {} devices", workers, shape.each),
           fmt::format("1, or a multiple of {}", shape.each));
  }
  if (shape.hosts > 1 && !scenario.platform.network) {
    refuse(scenario, "platform",
           fmt::format("{} workers are on {} hosts, and nothing joins them", workers, shape.hosts),
           "add network: {bandwidth: 25GB/s, latency: 5us}");
  }
  const int total = scenario.total_batch.value_or(0);
  if (total % shape.hosts != 0) {
    refuse(scenario, "total_batch",
           fmt::format("{} samples are not the same for each of {} hosts", total, shape.hosts),
           fmt::format("a multiple of {}", shape.hosts));
  }
  check_shares(scenario, workers, shape);
}

/// The place of the worker on cores among a host's classes, if there is one.
std::optional<std::size_t> cores_among(const Scenario& scenario, const Calibration& main) {
  std::optional<std::size_t> found;
  int rank = 0;
  for (std::size_t i = 0; i < scenario.devices.size(); ++i) {
    const DeviceClass& devices = scenario.devices[i];
    const Calibration& costs = costs_of(scenario, main, devices_on_host(scenario) + 1, rank);
    rank += devices.count;
    if (!on_cpu(costs)) continue;
    if (found || devices.count > 1) {
      throw InputError({}, "devices", "more than one worker on cores a host",
                       "one, beside GPUs; workers on cores alone need no devices");
    }
    found = i;
  }
  return found;
}

int gpus_on_host(const Scenario& scenario, const Calibration& main) {
  return devices_on_host(scenario) - (cores_among(scenario, main) ? 1 : 0);
}

Cost copied(const Calibration& calibration, const char* what, Bytes bytes) {
  if (const CopyTable* table = copies_of(calibration, what)) return copy_cost(*table, bytes);
  throw InputError({}, "devices",
                   fmt::format("calibration '{}' has no copies {}", calibration.id, what),
                   "measure it again: lockstep-measure --device cuda");
}

/// Adding reads two arrays and writes one, a copy reads one: without its own table, the copy's.
Cost added(const Calibration& calibration, Bytes bytes, int arrays) {
  const CopyTable* table = first_copies_of(calibration, {"add", "bucket_in"});
  if (table == nullptr) return {};
  const Cost one = copy_cost(*table, bytes);
  return {.host = one.host * arrays, .device = one.device * arrays, .launches = arrays};
}

/// All gradients into one array.
Cost packed(const Calibration& calibration, Bytes bytes) {
  const CopyTable* table = first_copies_of(calibration, {"bucket_in"});
  return table == nullptr ? Cost{} : copy_cost(*table, bytes);
}

/// What the cores do themselves takes their own time, all of it.
Cost on_cores(const Cost& cost) {
  return {.host = {}, .device = cost.device, .launches = 0};
}

/// Cores are one worker, so that the first GPU is the first or the second.
int first_gpu(const std::optional<std::size_t>& cores) {
  return cores == std::size_t{0} ? 1 : 0;
}

}  // namespace

int devices_on_host(const Scenario& scenario) {
  int each = 0;
  for (const DeviceClass& devices : scenario.devices) each += devices.count;
  return each;
}

void read_split(Fields& strategy, Scenario& scenario) {
  constexpr std::string_view kRules[] = {"even", "measured"};
  constexpr std::string_view kPlaces[] = {"device", "host"};
  constexpr std::int64_t kMostShare = 1'000'000;
  if (const ConfigNode* split = strategy.find("split")) {
    if (split->kind == ConfigNode::Kind::scalar) {
      scenario.split_measured = to_choice(*split, "strategy.split", kRules) == 1;
    } else {
      for (const ConfigNode& share : to_list(*split, "strategy.split", kMostPoints)) {
        scenario.strategy.split.push_back(
            static_cast<int>(to_integer(share, "strategy.split", 1, kMostShare)));
      }
      if (split->items.empty()) {
        throw InputError(split->at, "strategy.split", "an empty list", "a share for each worker");
      }
    }
  }
  if (const ConfigNode* combine = strategy.find("combine")) {
    scenario.strategy.combine_on_host = to_choice(*combine, "strategy.combine", kPlaces) == 1;
  }
}

void read_devices(Fields& top, Scenario& scenario) {
  if (scenario.strategy.kind != "heterogeneous") return;
  const ConfigNode* list = top.find("devices");
  if (list == nullptr) return;
  for (const ConfigNode& item : to_list(*list, "devices", kMostClasses)) {
    Fields fields(item, "devices");
    DeviceClass devices;
    devices.calibration = to_path(fields.require("calibration", "../calibration/data/cpu.json"),
                                  "devices.calibration");
    devices.count =
        static_cast<int>(to_integer(fields.require("count", "1"), "devices.count", 1, 1024));
    fields.finish();
    scenario.devices.push_back(std::move(devices));
  }
  if (scenario.devices.empty()) throw InputError(list->at, "devices", "an empty list");
}

void check_devices(const Scenario& scenario) {
  if (scenario.strategy.kind != "heterogeneous") return;
  if (!scenario.total_batch) {
    refuse(scenario, "batch_per_worker", "unlike workers share a batch out",
           "give total_batch: 128 instead");
  }
  if (scenario.devices.empty() && scenario.strategy.combine_on_host) {
    refuse(scenario, "strategy.combine", "workers of one kind reduce among themselves",
           "name the kinds: devices: [{calibration: cpu.json, count: 1}, ...]");
  }
  if (!scenario.devices.empty() && scenario.graph) {
    refuse(scenario, "graph", "a step with copies between cores and GPUs is no one graph",
           "set graph: false");
  }
  for (const int workers : scenario.workers) check_workers(scenario, workers);
}

DevicePlace device_place(const Scenario& scenario, int rank) {
  int left = rank % devices_on_host(scenario);
  for (std::size_t i = 0; i < scenario.devices.size(); ++i) {
    if (left < scenario.devices[i].count) return {.device_class = i, .in_class = left};
    left -= scenario.devices[i].count;
  }
  LOCKSTEP_ASSERT(false, "a host has as many devices as its classes");
  return {};
}

const Calibration& costs_of(const Scenario& scenario, const Calibration& main, int workers,
                            int rank) {
  // NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): it outlives the point made from it
  if (workers == 1 || scenario.devices.empty()) return main;
  const DeviceClass& devices = scenario.devices[device_place(scenario, rank).device_class];
  if (devices.costs) return *devices.costs;
  throw InputError({}, "devices", fmt::format("{} has not been read", devices.calibration));
}

UnlikeWorker unlike_worker(const Scenario& scenario, const Calibration& main, int rank,
                           Bytes bytes) {
  const std::optional<std::size_t> cores = cores_among(scenario, main);
  const Calibration& costs = costs_of(scenario, main, devices_on_host(scenario) + 1, rank);
  UnlikeWorker worker;
  worker.cpu = on_cpu(costs);
  if (!cores) {
    if (scenario.strategy.combine_on_host) {
      throw InputError({}, "strategy.combine", "no worker on cores adds gradients on the host",
                       "combine: device, or one among the devices");
    }
    return worker;
  }
  const int gpus = gpus_on_host(scenario, main);
  if (gpus == 0) {
    throw InputError({}, "devices", "a worker on cores and no GPU", "name GPUs, too");
  }
  worker.pack = packed(costs, bytes);
  if (worker.cpu) worker.pack = on_cores(worker.pack);
  if (scenario.strategy.combine_on_host) {
    if (worker.cpu) {
      worker.adds = true;
      worker.sum = on_cores(added(costs, bytes, gpus));
    } else {
      worker.to_sum = copied(costs, "device_to_host", bytes);
      worker.from_sum = copied(costs, "host_to_device", bytes);
    }
    return worker;
  }
  if (worker.cpu) {
    const Calibration& gpu =
        costs_of(scenario, main, devices_on_host(scenario) + 1, first_gpu(cores));
    worker.to_sum = on_cores(copied(gpu, "host_to_device", bytes));
    worker.from_sum = on_cores(copied(gpu, "device_to_host", bytes));
    return worker;
  }
  worker.adds = rank % devices_on_host(scenario) == first_gpu(cores);
  if (worker.adds) worker.sum = added(costs, bytes, 1);
  return worker;
}

BetweenSums between_sums(const Scenario& scenario, const Calibration& main, int workers,
                         Bytes bytes) {
  const int each = devices_on_host(scenario);
  const int hosts = workers / each;
  const bool on_host = scenario.strategy.combine_on_host;
  const int holders = on_host ? hosts : hosts * gpus_on_host(scenario, main);
  BetweenSums between;
  between.cost.collective = {.kind = CollectiveKind::all_reduce, .bytes = bytes};
  if (holders < 2) return between;
  Scenario among = scenario;
  among.platform.devices_per_host = holders / hosts;
  const auto cores = cores_among(scenario, main);
  const Calibration* costs = &main;
  if (on_host && cores) costs = scenario.devices[*cores].costs.get();
  const CollectiveCosts table(among, *costs, holders);
  between.cost.collective = table.collective(CollectiveKind::all_reduce, bytes);
  between.cost.host = table.call(CollectiveKind::all_reduce, bytes).host;
  between.basis = table.basis(CollectiveKind::all_reduce, bytes);
  return between;
}

Time combine_time(const Scenario& scenario, const Calibration& main, int workers, Bytes bytes) {
  Time to, sum, from;
  for (int rank = 0; rank < devices_on_host(scenario); ++rank) {
    const UnlikeWorker worker = unlike_worker(scenario, main, rank, bytes);
    to = std::max(to, worker.pack.device + worker.to_sum.device);
    sum = std::max(sum, worker.sum.device);
    from = std::max(from, worker.from_sum.device);
  }
  return to + sum + between_sums(scenario, main, workers, bytes).cost.collective.duration + from;
}

}  // namespace lockstep
