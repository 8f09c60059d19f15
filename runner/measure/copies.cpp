#include "runner/measure/copies.h"

#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/zeros.h>

#include "runner/measure/clock.h"
#include "runner/measure/statistics.h"

namespace lockstep::runner {

namespace {

constexpr int kTensors = 8;
constexpr int kRounds = 5;

CopyPoint time_one_size(Device& device, Bytes bytes) {
  const auto options = at::TensorOptions().device(device.torch());
  const std::int64_t elements = bytes.count / 4 / kTensors;
  const at::Tensor bucket = at::zeros({elements * kTensors}, options);
  const at::Tensor evict = at::zeros({16 << 20}, options);
  std::vector<at::Tensor> views, gradients;
  for (int i = 0; i < kTensors; ++i) {
    views.push_back(bucket.narrow(0, i * elements, elements));
    gradients.push_back(at::zeros({elements}, options));
  }
  std::vector<std::int64_t> times, calls;
  for (int i = 0; i < kRounds; ++i) {
    // As after a backward: gradients have just been written, the bucket has long left the cache.
    evict.add_(1);
    for (const at::Tensor& gradient : gradients) gradient.fill_(1);
    device.synchronize();
    const Moment begin = host_now();
    at::_foreach_copy_(views, gradients);
    calls.push_back(host_now() - begin);
    device.synchronize();
    times.push_back(host_now() - begin);
  }
  const bool host_computes = device.torch().is_cpu();
  return {.bytes = {elements * kTensors * 4},
          .tensors = kTensors,
          .device = Time::nanoseconds(median_ns(times)),
          .host = host_computes ? Time{} : Time::nanoseconds(median_ns(calls))};
}

}  // namespace

CopyTable measure_bucket_copies(Device& device) {
  CopyTable table;
  table.what = "bucket_in";
  for (std::int64_t kib = 64; kib <= 32 * 1024; kib *= 8) {
    table.points.push_back(time_one_size(device, {kib * 1024}));
  }
  return table;
}

}  // namespace lockstep::runner
