#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runner/measure/bench.h"
#include "runner/measure/reference.h"
#include "sim/records/measurement.h"

namespace lockstep::runner {

/// What the layers of one model at one batch cost a worker on cores that computes alone, from
/// blocks of steps that are taken when it is asked for: cores drift.
class CpuProfile {
 public:
  /// Trains a few steps first. Device and reference outlive it; `beat` is called once a step.
  CpuProfile(const std::string& model, int batch, Precision precision, std::uint64_t seed,
             Device& device, ReferenceKernel& reference, std::function<void()> beat);

  /// Plain and profiled steps by turns, for about `budget`, between two looks at the cores' speed.
  void sample(Time budget);
  /// Needs samples.
  ProfileSample finish(int process, int rank);

 private:
  int batch_;
  Precision precision_;
  Device& device_;
  ReferenceKernel& reference_;
  std::function<void()> beat_;
  Bench bench_;
  std::vector<int> ready_order_;
  std::vector<StepParts> parts_;
  std::vector<Time> steps_, before_, after_;
};

}  // namespace lockstep::runner
