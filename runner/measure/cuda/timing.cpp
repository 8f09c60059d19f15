#include "runner/measure/cuda/timing.h"

#include <ATen/Context.h>
#include <ATen/cuda/Sleep.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "runner/measure/cuda/check.h"
#include "runner/measure/statistics.h"

namespace lockstep::runner {

DeviceMark::DeviceMark() {
  check(cudaEventCreate(&event_), "creating an event");
}

DeviceMark::~DeviceMark() {
  if (event_) cudaEventDestroy(event_);
}

DeviceMark::DeviceMark(DeviceMark&& other) noexcept
    : event_(std::exchange(other.event_, nullptr)) {}

void DeviceMark::record(c10::cuda::CUDAStream stream) {
  check(cudaEventRecord(event_, stream.stream()), "recording an event");
}

Time DeviceMark::since(const DeviceMark& earlier) const {
  check(cudaEventSynchronize(event_), "waiting for the device");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, earlier.event_, event_), "reading an event");
  return Time::from_seconds(static_cast<double>(milliseconds) * 1e-3);
}

namespace {

/// Clock ticks a second of the spinning kernel, measured once per process.
double spin_rate() {
  static const double kRate = [] {
    constexpr std::int64_t kTicks = 10'000'000;
    const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
    at::cuda::sleep(kTicks);  // loads the kernel and wakes the clock
    DeviceMark begin, end;
    begin.record(stream);
    at::cuda::sleep(kTicks);
    end.record(stream);
    return static_cast<double>(kTicks) / end.since(begin).seconds();
  }();
  return kRate;
}

}  // namespace

void hold(c10::cuda::CUDAStream stream, Time span) {
  const double rate = spin_rate();
  const c10::cuda::CUDAStreamGuard guard(stream);
  at::cuda::sleep(static_cast<std::int64_t>(rate * span.seconds()));
}

int measure_launch_queue() {
  using Clock = std::chrono::steady_clock;
  constexpr int kMost = 8192;
  const Time held = Time::milliseconds(200);
  const auto blocked = std::chrono::milliseconds(20);  // a launch itself takes microseconds
  at::Tensor target = at::zeros({1}, at::device(at::kCUDA));
  const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
  check(cudaStreamSynchronize(stream.stream()), "waiting for the device");
  hold(stream, held);
  int launched = 0;
  for (; launched < kMost; ++launched) {
    const auto before = Clock::now();
    target.add_(1);
    if (Clock::now() - before > blocked) break;
  }
  check(cudaStreamSynchronize(stream.stream()), "waiting for the device");
  return launched < kMost ? launched : 0;
}

Time measure_round_trip() {
  using Clock = std::chrono::steady_clock;
  constexpr int kTrips = 50;
  const auto span = [](Clock::duration time) {
    return Time::nanoseconds(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
  };
  at::Tensor target = at::zeros({1}, at::device(at::kCUDA));
  const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
  std::vector<Time> trips;
  for (int i = 0; i < kTrips; ++i) {
    check(cudaStreamSynchronize(stream.stream()), "waiting for the device");
    target.add_(1);
    const auto launched = Clock::now();
    check(cudaStreamSynchronize(stream.stream()), "waiting for the device");
    trips.push_back(span(Clock::now() - launched));
  }
  DeviceMark begin, end;
  hold(stream, Time::milliseconds(1));
  begin.record(stream);
  for (int i = 0; i < kTrips; ++i) target.add_(1);
  end.record(stream);
  const Time kernel = Time::picoseconds(end.since(begin).ps() / kTrips);
  return std::max(Time(), median_time(trips) - kernel);
}

Time reference_kernel_cuda() {
  constexpr int kSize = 4096;
  constexpr int kWarmup = 4, kSamples = 9;
  const at::NoTF32Guard exact;  // the same kernel whatever the steps compute in
  const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
  // Values that are the same in every process and not all alike: power depends on them.
  const at::Tensor a =
      at::arange(kSize * kSize, at::device(at::kCUDA).dtype(at::kFloat)).sin_().view({kSize, -1});
  at::Tensor product = at::empty_like(a);
  std::vector<Time> samples;
  DeviceMark begin, end;
  for (int i = 0; i < kWarmup + kSamples; ++i) {
    begin.record(stream);
    at::mm_out(product, a, a);
    end.record(stream);
    const Time took = end.since(begin);
    if (i >= kWarmup) samples.push_back(took);
  }
  return median_time(samples);
}

}  // namespace lockstep::runner
