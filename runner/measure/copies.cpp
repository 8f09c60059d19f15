#include "runner/measure/copies.h"

#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/add.h>
#include <ATen/ops/zeros.h>

#include "runner/measure/clock.h"
#include "runner/measure/statistics.h"

namespace lockstep::runner {

namespace {

constexpr int kTensors = 8;
constexpr int kRounds = 5;

/// Times of `work`, each behind a `prepare`; host time only where the host does not compute.
template <typename Prepare, typename Work>
CopyPoint time_work(Device& device, Bytes bytes, int tensors, Prepare prepare, Work work) {
  std::vector<std::int64_t> times, calls;
  for (int i = 0; i < kRounds; ++i) {
    prepare();
    device.synchronize();
    const Moment begin = host_now();
    work();
    calls.push_back(host_now() - begin);
    device.synchronize();
    times.push_back(host_now() - begin);
  }
  const bool host_computes = device.torch().is_cpu();
  return {.bytes = bytes,
          .tensors = tensors,
          .device = Time::nanoseconds(median_ns(times)),
          .host = host_computes ? Time{} : Time::nanoseconds(median_ns(calls))};
}

CopyPoint time_copy(Device& device, Bytes bytes) {
  const auto options = at::TensorOptions().device(device.torch());
  const std::int64_t elements = bytes.count / 4 / kTensors;
  const at::Tensor bucket = at::zeros({elements * kTensors}, options);
  const at::Tensor evict = at::zeros({16 << 20}, options);
  std::vector<at::Tensor> views, gradients;
  for (int i = 0; i < kTensors; ++i) {
    views.push_back(bucket.narrow(0, i * elements, elements));
    gradients.push_back(at::zeros({elements}, options));
  }
  const auto prepare = [&] {
    // As after a backward: gradients have just been written, the bucket has long left the cache.
    evict.add_(1);
    for (const at::Tensor& gradient : gradients) gradient.fill_(1);
  };
  return time_work(device, {elements * kTensors * 4}, kTensors, prepare,
                   [&] { at::_foreach_copy_(views, gradients); });
}

CopyPoint time_adding(Device& device, Bytes bytes) {
  const auto options = at::TensorOptions().device(device.torch());
  const at::Tensor both = at::zeros({2, bytes.count / 4}, options);
  at::Tensor sum = at::zeros({bytes.count / 4}, options);
  return time_work(
      device, bytes, 2, [&] { both.fill_(1); },  // they have just arrived
      [&] { at::add_out(sum, both[0], both[1]); });
}

template <typename TimeOne>
CopyTable table_of(const std::string& what, TimeOne time_one) {
  CopyTable table;
  table.what = what;
  for (std::int64_t kib = 64; kib <= 32 * 1024; kib *= 8) {
    table.points.push_back(time_one(Bytes{kib * 1024}));
  }
  return table;
}

}  // namespace

CopyTable measure_bucket_copies(Device& device) {
  return table_of("bucket_in", [&device](Bytes bytes) { return time_copy(device, bytes); });
}

CopyTable measure_adding(Device& device) {
  return table_of("add", [&device](Bytes bytes) { return time_adding(device, bytes); });
}

}  // namespace lockstep::runner
