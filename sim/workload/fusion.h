#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/core/time.h"
#include "sim/core/units.h"
#include "sim/records/run.h"
#include "sim/workload/buckets.h"

namespace lockstep {

/// Horovod's defaults of an era: v0.21, of November 2020, shortened the cycle from 5 ms to 1 ms and
/// doubled the threshold from 64 MiB.
struct HorovodPreset {
  std::string_view name;
  Time cycle_time;
  Bytes fusion_threshold;
};
/// The newest first: the one that holds where none is named.
std::span<const HorovodPreset> horovod_presets();
/// Puts a preset's values into `options`. InputError, under `key`, for a name that is none.
void take_preset(std::string_view name, std::string_view key, StrategyOptions& options);

inline constexpr Time kShortestCycle = Time::microseconds(1);
inline constexpr Time kLongestCycle = Time::milliseconds(10'000);

/// Horovod's fusion (controller.cc, FuseResponses) of gradients that a cycle has found ready on all
/// ranks, in the order in which they were first negotiated; indices refer to it. The first one that
/// is left takes along those behind it, of its type, as long as all together do not exceed
/// `threshold`. What does not fit or is of another type is skipped, while what was taken and
/// skipped stays within the threshold; the group is closed before the first that would leave it. A
/// gradient is never split, and one above the threshold is reduced alone: with a threshold of zero
/// all are.
std::vector<Bucket> fuse(std::span<const Gradient> gradients, Bytes threshold);

/// When a cycle begins: `cycle_time` after the last one began, or at once where the thread was busy
/// for longer (operations.cc, RunLoopOnce).
Time next_cycle(Time last_began, Time now, Time cycle_time);

/// What ranks exchange to agree which of their cached gradients all have. Horovod sends a bit for
/// each; here it is a float, which any communicator can sum, and one for "I have some that are not
/// cached". Both are shorter than anything whose length would show.
Bytes negotiation_bytes(std::size_t gradients);
/// What each rank tells rank 0, and rank 0 all of them, about gradients that are not cached yet:
/// their number, and room for all of them, in whole numbers of 8 bytes.
Bytes request_bytes(std::size_t gradients);

/// When a gradient can be negotiated and when it can be read: on cores the same; on a GPU when the
/// host has issued what makes it, and when the device has done that. Of several ranks, the latest.
struct ReadyTimes {
  Time negotiable, ready;
  bool operator==(const ReadyTimes&) const = default;
};

/// One cycle in which something was reduced.
struct FusionCycle {
  Time begin;                  ///< of its negotiation
  std::vector<Bucket> groups;  ///< as they are reduced, one after the other
  std::vector<Time> launches;  ///< of each group: everything it needs is there
  bool operator==(const FusionCycle&) const = default;
};

/// What the background thread's work takes.
struct CycleCosts {
  Time negotiation;
  std::function<Time(const Bucket&)> reduction;  ///< with the copies into the buffer and out of it
  /// With Gloo the thread itself exchanges messages; NCCL's kernels it only launches.
  bool thread_reduces = true;
};

/// The background thread of a step, whose first cycle begins at time zero and whose last one
/// reduces the last gradient. It negotiates what is ready when a cycle begins, waits until the
/// device has made what it is to reduce, and reduces it group by group. All ranks' threads go in
/// step: negotiating, they wait for each other. `gradients` in the order in which they were first
/// negotiated, `ready` for each. cycle_time must be positive.
std::vector<FusionCycle> run_cycles(std::span<const Gradient> gradients,
                                    std::span<const ReadyTimes> ready,
                                    const StrategyOptions& options, const CycleCosts& costs);

}  // namespace lockstep
