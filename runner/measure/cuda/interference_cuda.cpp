#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <functional>

#include "runner/measure/cuda/check.h"
#include "runner/measure/cuda/tables_cuda.h"
#include "runner/measure/cuda/timing.h"
#include "runner/measure/statistics.h"

namespace lockstep::runner {
namespace {

constexpr Bytes kArray{25 * kMiB.count};  ///< as large as DDP's buckets
constexpr int kSamples = 5;
const Time kComputeTime = Time::milliseconds(4);
const Time kLead = Time::microseconds(200);  ///< for the collective's kernel to take its place

struct ComputeWork {
  std::string layer_kind;
  std::function<void()> once;
};

/// A 3x3 convolution in the middle of a ResNet at batch 64, and a batch normalisation as large as
/// its first ones.
std::vector<ComputeWork> computations(Precision precision) {
  const auto options = at::device(at::kCUDA).dtype(at::kFloat);
  const auto values = options.dtype(precision == Precision::bf16 ? at::kBFloat16 : at::kFloat);
  const at::Tensor image = at::randn({64, 128, 28, 28}, values);
  const at::Tensor weight = at::randn({128, 128, 3, 3}, values);
  const at::Tensor wide = at::randn({64, 256, 56, 56}, values);
  const at::Tensor scale = at::ones({256}, options), shift = at::zeros({256}, options);
  const at::Tensor mean = at::zeros({256}, options), variance = at::ones({256}, options);
  return {
      {"conv", [=] { at::conv2d(image, weight, {}, 1, 1); }},
      {"norm", [=] { at::batch_norm(wide, scale, shift, mean, variance, true, 0.1, 1e-5, true); }}};
}

/// Mean over the ranks: exactly the same on all of them, so that they agree on counts.
Time agree(NcclCommunicator& communicator, CudaDevice& device, Time mine) {
  const auto options = at::TensorOptions(device.torch()).dtype(at::kDouble);
  const at::Tensor sum = at::full({1}, mine.seconds(), options);
  communicator.all_reduce(sum);
  communicator.join();
  return Time::from_seconds(sum.item<double>() / communicator.size());
}

class InterferenceBench {
 public:
  InterferenceBench(NcclCommunicator& communicator, CudaDevice& device)
      : communicator_(communicator),
        device_(device),
        array_(at::zeros({kArray.count / std::int64_t{sizeof(float)}},
                         at::TensorOptions(device.torch()).dtype(at::kFloat))) {
    time_all_reduces(kCalls);
    alone_ = time_all_reduces(kCalls);
  }

  std::vector<InterferenceSample> measure(const ComputeWork& compute) {
    time_compute(compute.once, 2);  // chooses the algorithm
    const Time two = agree(communicator_, device_, time_compute(compute.once, 2));
    const auto calls = static_cast<int>(std::clamp<std::int64_t>(
        2 * kComputeTime.ps() / std::max<std::int64_t>(two.ps(), 1), 1, 200));
    const Time span = Time::picoseconds(two.ps() / 2) * calls;
    std::vector<Time> alone, transferring, waiting, beside_compute;
    for (int i = 0; i < kSamples; ++i) {
      alone.push_back(time_compute(compute.once, calls));
      transferring.push_back(beside_transfer(compute.once, calls, span));
      if (const Time took = beside_wait(compute.once, calls, span); took != Time()) {
        waiting.push_back(took);
      }
      beside_compute.push_back(transfer_beside(compute.once, calls));
    }
    const int workers = communicator_.size();
    const Time alone_time = median_time(alone);
    std::vector<InterferenceSample> samples{
        {compute.layer_kind, "transferring", workers, alone_time, median_time(transferring)},
        {compute.layer_kind, "compute", workers, alone_, median_time(beside_compute)}};
    if (!waiting.empty()) {
      samples.push_back({compute.layer_kind, "waiting", workers, alone_time, median_time(waiting)});
    }
    return samples;
  }

 private:
  static constexpr int kCalls = 8;  ///< all-reduces timed together

  Time time_compute(const std::function<void()>& once, int calls) {
    hold(device_.stream(), kLead);
    begin_.record(device_.stream());
    for (int i = 0; i < calls; ++i) once();
    end_.record(device_.stream());
    return end_.since(begin_);
  }

  Time time_all_reduces(int calls) {
    hold(communicator_.stream(), kLead);
    communicator_.enqueue_all_reduce(array_);
    begin_.record(communicator_.stream());
    for (int i = 0; i < calls; ++i) communicator_.enqueue_all_reduce(array_);
    end_.record(communicator_.stream());
    return end_.since(begin_);
  }

  /// Compute while all-reduces run one after another for at least three times as long.
  Time beside_transfer(const std::function<void()>& once, int calls, Time span) {
    const Time batch = agree(communicator_, device_, alone_);
    const std::int64_t transfers =
        1 + 3 * kCalls * span.ps() / std::max<std::int64_t>(batch.ps(), 1);
    communicator_.barrier();
    for (std::int64_t i = 0; i < std::min<std::int64_t>(transfers, 400); ++i) {
      communicator_.enqueue_all_reduce(array_);
    }
    const Time took = time_compute(once, calls);
    communicator_.synchronize(communicator_.stream());
    return took;
  }

  /// Compute while an all-reduce waits for the last rank, which comes late. Zero on that rank.
  Time beside_wait(const std::function<void()>& once, int calls, Time span) {
    communicator_.barrier();
    const bool late = communicator_.rank() == communicator_.size() - 1;
    if (late) hold(communicator_.stream(), span * 3 + kLead * 4);
    communicator_.enqueue_all_reduce(array_);
    Time took;
    if (!late) took = time_compute(once, calls);
    communicator_.synchronize(communicator_.stream());
    return took;
  }

  /// kCalls all-reduces while every rank computes for longer than they take.
  Time transfer_beside(const std::function<void()>& once, int calls) {
    communicator_.barrier();
    for (int i = 0; i < 4 * calls; ++i) once();
    const Time took = time_all_reduces(kCalls);
    device_.synchronize();
    return took;
  }

  NcclCommunicator& communicator_;
  CudaDevice& device_;
  at::Tensor array_;
  DeviceMark begin_, end_;
  Time alone_;
};

}  // namespace

std::vector<InterferenceSample> measure_interference_cuda(NcclCommunicator& communicator,
                                                          CudaDevice& device, Precision precision) {
  const c10::InferenceMode inference;
  InterferenceBench bench(communicator, device);
  std::vector<InterferenceSample> samples;
  for (const ComputeWork& compute : computations(precision)) {
    for (InterferenceSample& sample : bench.measure(compute)) samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace lockstep::runner
