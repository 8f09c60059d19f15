#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/records/calibration.h"
#include "sim/records/run.h"
#include "sim/records/validation.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

/// The question that a run on `platform` answered. Where its workers are of several kinds, their
/// calibrations are found by id among `known`, which outlives the scenario; InputError for one that
/// is not there.
Scenario scenario_of(const Run& run, const PlatformOptions& platform,
                     std::span<const Calibration> known = {});

/// Each run beside what the simulator says about it, in groups: `cpu`; on GPUs of `single` and
/// `ddp` `graph`, and eager steps as `device_bound` and `host_bound`, of the others
/// `other_strategies`; of several hosts, `hosts`; `cpu_replay` and `hosts_replay` where workers
/// waited instead of computing; apart, wherever they ran, `parameter_server`, `horovod`,
/// `heterogeneous`, `stragglers` and `ddp_options` (with `_hosts` and `_replay` alike, and with
/// `_gpus`). Steps of
/// NCCL on three workers and more once more as `extrapolated_n`, from what was measured on at most
/// two (up_to), and the groups of validate_tables, each with what is wanted of it; so have the
/// `buckets` of validate_buckets. Runs that failed or hold no repeat are left out. `platform` is
/// where they ran; by default what a run says, else the calibrated host. `after_run`, if any, is
/// called after each. `known`: calibrations that runs of several kinds of workers name. Throws
/// InputError where the calibration cannot answer.
Validation validate(const Calibration& calibration, const std::vector<Run>& runs,
                    const PlatformOptions& platform = {},
                    const std::function<void()>& after_run = {},
                    std::span<const Calibration> known = {});

/// Those of several visits as one: groups of the same name together.
Validation merge(const std::vector<Validation>& validations);

/// The median over repeats of each repeat's median, as it was.
Time median_step(const Run& run);

/// A point that says which run it is of, with nothing compared yet.
ValidationPoint point_of(const Run& run);

/// Whether a point counts in its group's errors.
bool counts(const ValidationPoint& point);

/// Mean share of steps within the predicted band over the points that count and have their samples;
/// none without any.
std::optional<double> in_band(const ValidationGroup& group);

/// Per bucket of a run, on the rank whose gradients were the last to be ready: when it was ready,
/// launched and done, predicted and measured at the calibration's speed (over a network: both at
/// the run's). Empty where the run recorded none, and where its steps were not synchronised:
/// buckets are only recorded in synchronised steps, of their own, whose host records an event for
/// each.
struct BucketComparison {
  int bucket = 0;
  BucketTimes predicted, measured;
  /// The steps that these are moments of. Where the recorded ones' length is not known, both are
  /// the run's median step.
  Time predicted_step, measured_step;
};

/// How much later than measured it is predicted, each as a share of its own step.
double share_later(const BucketComparison& steps, Time predicted, Time measured);

std::vector<BucketComparison> compare_buckets(const Calibration& calibration, const Run& run,
                                              const PlatformOptions& platform = {});

}  // namespace lockstep
