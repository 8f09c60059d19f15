#include "runner/measure/cpu_profile.h"

#include <utility>

#include "runner/measure/clock.h"
#include "runner/measure/profile.h"
#include "runner/measure/statistics.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

constexpr int kWarmups = 3;
constexpr int kFewest = 3;  // steps of a block

BenchOptions bench_options(const std::string& model, int batch, Precision precision,
                           std::uint64_t seed) {
  BenchOptions options;
  options.model = model;
  options.batch = batch;
  options.data.seed = seed;
  options.precision = precision;
  options.seed = seed;
  return options;
}

}  // namespace

CpuProfile::CpuProfile(const std::string& model, int batch, Precision precision, std::uint64_t seed,
                       Device& device, ReferenceKernel& reference, std::function<void()> beat)
    : batch_(batch),
      precision_(precision),
      device_(device),
      reference_(reference),
      beat_(std::move(beat)),
      bench_(bench_options(model, batch, precision, seed), nullptr, device),
      ready_order_(bench_.ready_order()) {
  for (int i = 0; i < kWarmups; ++i) {
    bench_.timed_step();
    beat_();
  }
}

void CpuProfile::sample(Time budget) {
  before_.push_back(Time::nanoseconds(reference_.measure()));
  const Moment end = host_now() + budget.ns();
  for (int i = 0; i < kFewest || host_now() < end; ++i) {
    parts_.push_back(bench_.profiled_step());
    const TimedStep step = bench_.timed_step();
    steps_.push_back(Time::nanoseconds(step.total - step.input));
    beat_();
  }
  after_.push_back(Time::nanoseconds(reference_.measure()));
}

ProfileSample CpuProfile::finish(int process, int rank) {
  LOCKSTEP_ASSERT(!steps_.empty(), "a profile rests on steps");
  ProfileSample sample;
  sample.process = process;
  sample.rank = rank;
  sample.speed_index = {.before = median_time(before_), .after = median_time(after_)};
  sample.profile = host_profile(bench_.model(), parts_, ready_order_);
  sample.profile.batch = batch_;
  sample.profile.precision = to_string(precision_);
  sample.profile.device = device_.name();
  sample.profile.step = median_time(steps_);
  sample.profile.input_bytes = bench_.input_bytes();
  sample.steps = steps_;
  return sample;
}

}  // namespace lockstep::runner
