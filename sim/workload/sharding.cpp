#include "sim/workload/sharding.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "sim/core/error.h"

namespace lockstep {

std::vector<std::vector<int>> shard_parameters(std::span<const Bytes> parameters, int servers) {
  const int count = static_cast<int>(parameters.size());
  if (servers < 1 || servers > count) {
    throw InputError({}, "strategy.servers",
                     fmt::format("{} servers cannot share {} parameters", servers, count),
                     fmt::format("from 1 to {}: each holds whole parameters", count));
  }
  std::vector<int> order(parameters.size());
  std::iota(order.begin(), order.end(), 0);
  const auto size = [&](int index) { return parameters[static_cast<std::size_t>(index)]; };
  std::ranges::stable_sort(order, std::greater{}, size);
  std::vector<std::vector<int>> shards(static_cast<std::size_t>(servers));
  std::vector<Bytes> held(shards.size());
  // Who holds nothing comes first, though there may be parameters without bytes.
  const auto load = [&](std::size_t server) {
    return std::pair(!shards[server].empty(), held[server]);
  };
  for (const int index : order) {
    std::size_t least = 0;
    for (std::size_t server = 1; server < shards.size(); ++server) {
      if (load(server) < load(least)) least = server;
    }
    shards[least].push_back(index);
    held[least] += size(index);
  }
  for (std::vector<int>& shard : shards) std::ranges::sort(shard);
  return shards;
}

std::vector<Bytes> shard_bytes(std::span<const Bytes> parameters,
                               std::span<const std::vector<int>> shards) {
  std::vector<Bytes> bytes(shards.size());
  for (std::size_t server = 0; server < shards.size(); ++server) {
    for (const int index : shards[server]) {
      bytes[server] += parameters[static_cast<std::size_t>(index)];
    }
  }
  return bytes;
}

}  // namespace lockstep
