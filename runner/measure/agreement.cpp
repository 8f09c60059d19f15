#include "runner/measure/agreement.h"

#include <ATen/ops/zeros.h>

#include "runner/measure/clock.h"
#include "runner/measure/statistics.h"

namespace lockstep::runner {

namespace {

constexpr int kWarmup = 20;
constexpr int kRounds = 201;

/// A flag for each of 15 to 1023 gradients, and one more.
constexpr std::int64_t kFewest = 16, kMost = 1024;

CopyPoint time_agreement(Communicator& control, std::int64_t floats) {
  const at::Tensor flags = at::zeros({floats}, at::kFloat);
  std::vector<std::int64_t> times;
  for (int i = 0; i < kWarmup + kRounds; ++i) {
    const Moment begin = host_now();
    control.all_reduce(flags);
    control.join();
    if (i >= kWarmup) times.push_back(host_now() - begin);
  }
  control.take_transfers();
  return {.bytes = {floats * std::int64_t{sizeof(float)}},
          .tensors = 1,
          .device = {},
          .host = Time::nanoseconds(median_ns(times))};
}

}  // namespace

CopyTable measure_agreement(Communicator& control) {
  CopyTable table{.what = "agreement", .points = {}};
  for (std::int64_t floats = kFewest; floats <= kMost; floats *= 4) {
    table.points.push_back(time_agreement(control, floats));
  }
  return table;
}

}  // namespace lockstep::runner
