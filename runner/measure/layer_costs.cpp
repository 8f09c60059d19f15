#include "runner/measure/layer_costs.h"

#include <algorithm>

#include "runner/measure/profile.h"
#include "sim/core/error.h"

namespace lockstep::runner {

void StretchSamples::add(LayerTimes step) {
  if (!steps_.empty()) {
    const auto same = [](const StretchTime& a, const StretchTime& b) {
      return a.kind == b.kind && a.layer == b.layer;
    };
    if (!std::equal(step.begin(), step.end(), steps_[0].begin(), steps_[0].end(), same)) {
      throw RunError("the layers of two steps ran in different orders");
    }
  }
  steps_.push_back(std::move(step));
}

LayerTimes StretchSamples::median() const {
  LayerTimes result = steps_.front();
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::vector<StretchTime> column;
    for (const LayerTimes& step : steps_) column.push_back(step[i]);
    const auto middle = column.begin() + static_cast<std::ptrdiff_t>(column.size() / 2);
    std::nth_element(column.begin(), middle, column.end(),
                     [](const StretchTime& a, const StretchTime& b) { return a.time < b.time; });
    result[i] = *middle;
  }
  return result;
}

LayerTimes durations(const std::vector<Stretch>& stretches) {
  LayerTimes step;
  for (const Stretch& stretch : stretches) {
    step.push_back({stretch.kind, stretch.layer, Time::nanoseconds(stretch.end - stretch.begin)});
  }
  return step;
}

LayerTimes work_by_issue(const std::vector<Stretch>& stretches,
                         const std::vector<DeviceWork>& work) {
  LayerTimes step;
  for (const Stretch& stretch : stretches) step.push_back({stretch.kind, stretch.layer, {}});
  for (const DeviceWork& one : work) {
    // Stretches follow each other: the last one that begins no later is the one.
    const auto after = std::upper_bound(
        stretches.begin(), stretches.end(), one.issued,
        [](std::int64_t issued, const Stretch& stretch) { return issued < stretch.begin; });
    if (after == stretches.begin() || one.issued >= stretches.back().end) continue;
    StretchTime& owner = step[static_cast<std::size_t>(after - stretches.begin() - 1)];
    owner.time += Time::nanoseconds(one.end - one.start);
    ++owner.launches;
  }
  return step;
}

LayerTimes work_in_order(const std::vector<Stretch>& layout, const std::vector<DeviceWork>& work) {
  LayerTimes step;
  auto next = work.begin();
  for (const Stretch& stretch : layout) {
    StretchTime owner{stretch.kind, stretch.layer, {}};
    for (std::int64_t i = stretch.begin; i < stretch.end; ++i, ++next) {
      LOCKSTEP_ASSERT(next != work.end(), "a replay runs as much work as was captured");
      owner.time += Time::nanoseconds(next->end - next->start);
      ++owner.launches;
    }
    step.push_back(owner);
  }
  return step;
}

// Replays follow each other, one synchronised before the next: their work does not mix.
std::vector<std::vector<DeviceWork>> by_replay(const std::vector<DeviceWork>& work, int replays,
                                               std::size_t expected) {
  if (work.size() != expected * static_cast<std::size_t>(replays)) return {};
  std::vector<std::vector<DeviceWork>> result;
  for (auto begin = work.begin(); begin != work.end();
       begin += static_cast<std::ptrdiff_t>(expected)) {
    result.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(expected));
  }
  return result;
}

int launches_of(const LayerTimes& step) {
  int launches = 0;
  for (const StretchTime& stretch : step) launches += stretch.launches;
  return launches;
}

Time total_of(const LayerTimes& step) {
  Time total;
  for (const StretchTime& stretch : step) total += stretch.time;
  return total;
}

void scale_to(LayerTimes& step, Time total) {
  const double factor = total.seconds() / total_of(step).seconds();
  for (StretchTime& stretch : step)
    stretch.time = Time::from_seconds(stretch.time.seconds() * factor);
}

Time gap_of(Time back_to_back, const LayerTimes& work) {
  const int launches = launches_of(work);
  if (launches == 0) return {};
  return Time::picoseconds(
      std::max<std::int64_t>(0, (back_to_back - total_of(work)).ps() / launches));
}

namespace {

Cost& cost_of(Profile& profile, const StretchTime& stretch) {
  switch (stretch.kind) {
    case StretchKind::forward:
      return profile.layers[static_cast<std::size_t>(stretch.layer)].forward;
    case StretchKind::backward:
      return profile.layers[static_cast<std::size_t>(stretch.layer)].backward;
    case StretchKind::optimizer:
      return profile.optimizer;
    case StretchKind::overhead:
      break;
  }
  return profile.step_overhead;
}

}  // namespace

void fill_costs(Profile& profile, const LayerTimes& work, const LayerTimes& host, Time gap) {
  std::vector<int> order;
  for (const StretchTime& stretch : work) {
    Cost& cost = cost_of(profile, stretch);
    cost.device += stretch.time + gap * stretch.launches;
    cost.launches += stretch.launches;
    if (stretch.kind == StretchKind::backward) order.push_back(stretch.layer);
  }
  const std::vector<int> places = places_in_backward(order, profile.layers.size());
  for (std::size_t i = 0; i < places.size(); ++i) profile.layers[i].backward_order = places[i];
  for (const StretchTime& stretch : host) cost_of(profile, stretch).host += stretch.time;
}

}  // namespace lockstep::runner
