#include "sim/workload/fusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "sim/core/error.h"

namespace lockstep {
namespace {

constexpr std::array<HorovodPreset, 2> kPresets{{
    {"v0.21", Time::milliseconds(1), Bytes{128 * 1024 * 1024}},
    {"v0.20", Time::milliseconds(5), Bytes{64 * 1024 * 1024}},
}};

/// Takes the group of the first gradient out of `left`.
Bucket take_group(std::vector<int>& left, std::span<const Gradient> gradients, Bytes threshold) {
  const auto of = [&](int index) { return gradients[static_cast<std::size_t>(index)]; };
  const Gradient first = of(left.front());
  Bucket group;
  std::vector<int> others;
  Bytes taken, skipped;
  bool open = true;
  for (const int index : left) {
    const Gradient gradient = of(index);
    if (group.empty() ||
        (open && gradient.type == first.type && taken + gradient.bytes <= threshold)) {
      group.push_back(index);
      taken += gradient.bytes;
      continue;
    }
    others.push_back(index);
    skipped += gradient.bytes;
    open = open && taken + skipped <= threshold;
  }
  left = std::move(others);
  return group;
}

/// Of those in `left`, the ones that all ranks can name when a cycle begins.
std::vector<int> negotiable_at(Time begin, const std::vector<int>& left,
                               std::span<const ReadyTimes> ready) {
  std::vector<int> common;
  for (const int index : left) {
    if (ready[static_cast<std::size_t>(index)].negotiable <= begin) common.push_back(index);
  }
  return common;
}

/// Where nothing was ready, cycles that find nothing either are passed over.
Time first_useful(Time next, Time period, const std::vector<int>& left,
                  std::span<const ReadyTimes> ready) {
  Time earliest = ready[static_cast<std::size_t>(left.front())].negotiable;
  for (const int index : left) {
    earliest = std::min(earliest, ready[static_cast<std::size_t>(index)].negotiable);
  }
  if (earliest <= next) return next;
  const std::int64_t cycles = ((earliest - next).ps() + period.ps() - 1) / period.ps();
  return next + period * cycles;
}

}  // namespace

std::span<const HorovodPreset> horovod_presets() {
  return kPresets;
}

void take_preset(std::string_view name, std::string_view key, StrategyOptions& options) {
  const auto* found = std::ranges::find(kPresets, name, &HorovodPreset::name);
  if (found == kPresets.end()) {
    throw InputError({}, std::string(key), fmt::format("there is no preset \"{}\"", name),
                     "v0.21 (1 ms and 128 MiB) or v0.20 (5 ms and 64 MiB)");
  }
  options.cycle_time = found->cycle_time;
  options.fusion_threshold = found->fusion_threshold;
}

std::vector<Bucket> fuse(std::span<const Gradient> gradients, Bytes threshold) {
  std::vector<int> left;
  for (std::size_t i = 0; i < gradients.size(); ++i) left.push_back(static_cast<int>(i));
  std::vector<Bucket> groups;
  while (!left.empty()) groups.push_back(take_group(left, gradients, threshold));
  return groups;
}

Time next_cycle(Time last_began, Time now, Time cycle_time) {
  return std::max(now, last_began + cycle_time);
}

Bytes negotiation_bytes(std::size_t gradients) {
  return {static_cast<std::int64_t>(sizeof(float) * (gradients + 1))};
}

Bytes request_bytes(std::size_t gradients) {
  return {static_cast<std::int64_t>(sizeof(std::int64_t) * (gradients + 1))};
}

std::vector<FusionCycle> run_cycles(std::span<const Gradient> gradients,
                                    std::span<const ReadyTimes> ready,
                                    const StrategyOptions& options, const CycleCosts& costs) {
  LOCKSTEP_ASSERT(options.cycle_time > Time{}, "a cycle takes time");
  LOCKSTEP_ASSERT(gradients.size() == ready.size(), "every gradient gets ready");
  std::vector<int> left;
  for (std::size_t i = 0; i < gradients.size(); ++i) left.push_back(static_cast<int>(i));
  std::vector<FusionCycle> cycles;
  for (Time begin; !left.empty();) {
    const std::vector<int> common = negotiable_at(begin, left, ready);
    Time now = begin + costs.negotiation;
    if (common.empty()) {
      const Time next = next_cycle(begin, now, options.cycle_time);
      begin = first_useful(next, next - begin, left, ready);
      continue;
    }
    std::erase_if(left, [&](int index) { return std::ranges::binary_search(common, index); });
    std::vector<Gradient> found;
    for (const int index : common) found.push_back(gradients[static_cast<std::size_t>(index)]);
    FusionCycle& cycle =
        cycles.emplace_back(FusionCycle{.begin = begin, .groups = {}, .launches = {}});
    for (Bucket group : fuse(found, options.fusion_threshold)) {
      for (int& member : group) {
        member = common[static_cast<std::size_t>(member)];
        now = std::max(now, ready[static_cast<std::size_t>(member)].ready);
      }
      cycle.launches.push_back(now);
      if (costs.thread_reduces) now += costs.reduction(group);
      cycle.groups.push_back(std::move(group));
    }
    begin = next_cycle(begin, now, options.cycle_time);
  }
  return cycles;
}

}  // namespace lockstep
