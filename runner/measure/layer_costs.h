#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/measure/mark_log.h"
#include "sim/core/time.h"
#include "sim/records/profile.h"

namespace lockstep::runner {

/// One kernel, copy or memset as the device ran it. Times in nanoseconds of std::chrono's steady
/// clock, so that they compare with marks taken on the host.
struct DeviceWork {
  std::string name;
  std::int64_t start = 0, end = 0;
  std::int64_t issued = 0;        ///< start of the call that launched it; 0: not seen
  std::uint32_t thread = 0;       ///< of that call
  std::uint32_t stream = 0;       ///< CUPTI's number of the stream
  std::uint32_t correlation = 0;  ///< one per call: all the work of a graph launch shares it
};

/// Time and number of launches of one stretch of a step.
struct StretchTime {
  StretchKind kind = StretchKind::overhead;
  int layer = -1;
  Time time;
  int launches = 0;
};
/// A whole step, in order.
using LayerTimes = std::vector<StretchTime>;

/// The same step several times.
class StretchSamples {
 public:
  /// RunError when the step's stretches differ from those of the first one.
  void add(LayerTimes step);
  bool empty() const { return steps_.empty(); }
  /// Stretch by stretch.
  LayerTimes median() const;

 private:
  std::vector<LayerTimes> steps_;
};

/// Times between marks that are host times.
LayerTimes durations(const std::vector<Stretch>& stretches);

/// The device work whose launch was issued within each stretch (host times in nanoseconds).
LayerTimes work_by_issue(const std::vector<Stretch>& stretches,
                         const std::vector<DeviceWork>& work);

/// The device work of a graph's replay, in order, shared out by how much each stretch captured.
/// `work` holds as many entries as `layout` counts.
LayerTimes work_in_order(const std::vector<Stretch>& layout, const std::vector<DeviceWork>& work);

/// The work of each replay of a graph of `expected` pieces, replays in order, work in order of its
/// start. Empty where the work is not that of whole replays.
std::vector<std::vector<DeviceWork>> by_replay(const std::vector<DeviceWork>& work, int replays,
                                               std::size_t expected);

int launches_of(const LayerTimes& step);
Time total_of(const LayerTimes& step);
/// Stretches every time so that they add up to `total`.
void scale_to(LayerTimes& step, Time total);

/// What passes between two kernels of a step that takes `back_to_back` on the device; not negative.
Time gap_of(Time back_to_back, const LayerTimes& work);

/// Fills layers, optimizer, step overhead and backward order of `profile`, whose layers are listed.
/// Every kernel of `work` takes `gap` besides its time. `host` may be empty (a graph).
void fill_costs(Profile& profile, const LayerTimes& work, const LayerTimes& host, Time gap);

}  // namespace lockstep::runner
