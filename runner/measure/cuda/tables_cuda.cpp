#include "runner/measure/cuda/tables_cuda.h"

#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>

#include "runner/measure/cuda/check.h"
#include "runner/measure/cuda/timing.h"
#include "runner/measure/statistics.h"

namespace lockstep::runner {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBlocks = 9;                            ///< samples of a point
constexpr int kFewest = 4, kMost = 40;                ///< calls in a block
const Time kBlockTime = Time::milliseconds(2);        ///< what a block should take
const Time kIssueAllowance = Time::microseconds(15);  ///< the host gets ahead by this much a call

Time since(Clock::time_point begin) {
  return Time::nanoseconds(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
}

/// Device and host time of one call of `work`, called `calls` times in a row on `stream`.
struct BlockTime {
  Time device, host;
};
template <class Work>
BlockTime time_block(c10::cuda::CUDAStream stream, int calls, const Work& work) {
  DeviceMark begin, end;
  hold(stream, kIssueAllowance * calls);
  work();  // lines the ranks up
  begin.record(stream);
  const auto host_begin = Clock::now();
  for (int i = 0; i < calls; ++i) work();
  const Time host = since(host_begin);
  end.record(stream);
  return {Time::picoseconds(end.since(begin).ps() / calls), Time::picoseconds(host.ps() / calls)};
}

/// Host time of one call as a strategy makes it, ordered behind the compute stream.
template <class Work>
Time time_host(NcclCommunicator& communicator, const Work& work, int calls) {
  communicator.barrier();
  const auto begin = Clock::now();
  for (int i = 0; i < calls; ++i) work();
  const Time took = since(begin);
  communicator.synchronize(communicator.stream());
  return Time::picoseconds(took.ps() / calls);
}

int calls_for(Time one) {
  const std::int64_t wanted = kBlockTime.ps() / std::max<std::int64_t>(one.ps(), 1);
  return static_cast<int>(std::clamp<std::int64_t>(wanted, kFewest, kMost));
}

}  // namespace

std::vector<Bytes> doubling_sizes(Bytes most) {
  std::vector<Bytes> sizes;
  for (Bytes size = kKiB; size <= most; size.count *= 2) sizes.push_back(size);
  return sizes;
}

CollectiveTable measure_collective_cuda(NcclCommunicator& communicator, CollectiveKind kind,
                                        const std::vector<Bytes>& sizes) {
  CollectiveTable table{
      .collective = kind == CollectiveKind::all_reduce ? "all_reduce" : "broadcast",
      .backend = communicator.backend(),
      .algorithm = "",
      .workers = communicator.size(),
      .topology = "one host",
      .points = {},
      .environment = {}};
  const auto largest = std::max_element(sizes.begin(), sizes.end());
  const at::Tensor array = at::zeros({largest->count / std::int64_t{sizeof(float)}},
                                     at::device(at::kCUDA).dtype(at::kFloat));
  check(cudaDeviceSynchronize(), "waiting for the device");
  for (const Bytes size : sizes) {
    const at::Tensor part = array.narrow(0, 0, size.count / std::int64_t{sizeof(float)});
    const auto call = [&] {
      if (kind == CollectiveKind::all_reduce) {
        communicator.enqueue_all_reduce(part);
      } else {
        communicator.enqueue_broadcast(part, 0);
      }
    };
    const auto ordered = [&] {
      if (kind == CollectiveKind::all_reduce) {
        communicator.all_reduce(part);
      } else {
        communicator.broadcast(part, 0);
      }
    };
    // Ranks must agree on the number of calls, so it follows from what a fixed rate would give.
    const Time guess = Time::microseconds(10) + transfer_time(size, {200'000'000'000});
    const int calls = calls_for(guess);
    time_block(communicator.stream(), kFewest, call);  // warms up
    std::vector<Time> device, host;
    for (int i = 0; i < kBlocks; ++i) host.push_back(time_host(communicator, ordered, calls));
    for (int block = 0; block < kBlocks; ++block) {
      const BlockTime took = time_block(communicator.stream(), calls, call);
      device.push_back(took.device);
    }
    communicator.synchronize(communicator.stream());
    const Quantiles spread = quantiles(device);
    table.points.push_back({.bytes = size,
                            .p10 = spread.p10,
                            .p50 = spread.p50,
                            .p90 = spread.p90,
                            .host = median_time(host)});
  }
  return table;
}

CopyTable measure_bucket_in_cuda(CudaDevice& device) {
  const c10::InferenceMode inference;
  CopyTable table{.what = "bucket_in", .points = {}};
  // As many tensors as a bucket of that size holds in a ResNet, roughly.
  struct Shape {
    std::int64_t mebibytes;
    int tensors;
  };
  for (const auto [mebibytes, tensors] :
       {Shape{1, 2}, Shape{4, 6}, Shape{10, 12}, Shape{25, 30}, Shape{50, 60}, Shape{100, 120}}) {
    const std::int64_t each = mebibytes * kMiB.count / std::int64_t{sizeof(float)} / tensors;
    const at::Tensor flat = at::zeros({each * tensors}, at::device(at::kCUDA));
    std::vector<at::Tensor> gradients, views;
    for (int i = 0; i < tensors; ++i) {
      gradients.push_back(at::ones({each}, at::device(at::kCUDA)));
      views.push_back(flat.narrow(0, each * i, each));
    }
    const auto copy = [&] { at::_foreach_copy_(views, gradients); };
    constexpr int kCalls = 10;
    time_block(device.stream(), kCalls, copy);  // warms up
    std::vector<Time> on_device, on_host;
    for (int block = 0; block < kBlocks; ++block) {
      const BlockTime took = time_block(device.stream(), kCalls, copy);
      on_device.push_back(took.device);
      on_host.push_back(took.host);
    }
    table.points.push_back({.bytes = {each * tensors * std::int64_t{sizeof(float)}},
                            .tensors = tensors,
                            .device = median_time(on_device),
                            .host = median_time(on_host)});
  }
  return table;
}

}  // namespace lockstep::runner
