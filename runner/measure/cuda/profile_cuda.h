#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runner/measure/cuda/step_timing.h"
#include "runner/measure/precision.h"
#include "sim/records/measurement.h"

namespace lockstep::runner {

/// One model at one batch, trained on one GPU, and what its layers cost, eager and as a graph.
///
/// Host times: marks while the host issues steps to a device that keeps up, without a profiler,
/// scaled to the time an unmarked step takes to issue. Device times: kernel times from CUPTI, plus
/// what passes between kernels that are queued back to back, shared out evenly over the kernels and
/// taken without the profiler.
class ProfileCuda {
 public:
  /// Builds the model and trains it until nothing is left to be chosen. Calls no other worker.
  ProfileCuda(const std::string& model, int batch, Precision precision, std::uint64_t seed,
              const GpuWorker& worker, Time budget);
  ~ProfileCuda();

  /// About how many steps a profile trains in all, where one takes `step` and `runs` of the model
  /// are measured beside it.
  static int steps_of(Time step, Time block, int runs);

  /// Trains a step while as much memory is taken as a run of the model beside this profile takes
  /// with any strategy, so that it is here that memory does not suffice, and not within a
  /// collective for which the others would wait. Calls no other worker.
  void rehearse_run();
  /// Times some synchronised eager steps. Hosts drift within seconds: called before and after each
  /// run of this model, it sees the hosts that the runs see. Workers call it together.
  void sample_steps();
  /// Call this, after sample_steps, for every profile of the process before the first finish():
  /// once CUPTI has been on, the host may stay slower. Workers call both together.
  void measure_undisturbed();
  /// The eager and the graph profile, the latter where memory sufficed for a graph on every worker.
  /// `beside`: workers that measure at the same time.
  std::vector<ProfileSample> finish(int process, int beside);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::runner
