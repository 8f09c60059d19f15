#include "runner/measure/cuda/tables_cuda.h"

#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/add.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>

#include "runner/measure/cuda/check.h"
#include "runner/measure/cuda/timing.h"
#include "runner/measure/statistics.h"
#include "sim/core/error.h"

namespace lockstep::runner {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBlocks = 9;                            ///< samples of a point
constexpr int kFewest = 4, kMost = 40;                ///< calls in a block
const Time kBlockTime = Time::milliseconds(2);        ///< what a block should take
const Time kIssueAllowance = Time::microseconds(15);  ///< the host gets ahead by this much a call
const Time kPairAllowance = Time::microseconds(120);  ///< by this much a gather and a scatter

Time since(Clock::time_point begin) {
  return Time::nanoseconds(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
}

/// Device and host time of one call of `work`, called `calls` times in a row on `stream`.
struct BlockTime {
  Time device, host;
};
template <class Work>
BlockTime time_block(c10::cuda::CUDAStream stream, int calls, Time allowance, const Work& work) {
  DeviceMark begin, end;
  hold(stream, allowance * calls);
  work();  // lines the ranks up
  begin.record(stream);
  const auto host_begin = Clock::now();
  for (int i = 0; i < calls; ++i) work();
  const Time host = since(host_begin);
  end.record(stream);
  return {Time::picoseconds(end.since(begin).ps() / calls), Time::picoseconds(host.ps() / calls)};
}

/// Device time of one call, several times.
template <class Work>
std::vector<Time> time_blocks(NcclCommunicator& communicator, int calls, Time allowance,
                              const Work& work) {
  std::vector<Time> device;
  for (int block = 0; block < kBlocks; ++block) {
    device.push_back(time_block(communicator.stream(), calls, allowance, work).device);
  }
  communicator.synchronize(communicator.stream());
  return device;
}

/// Host time of one call as a strategy makes it, ordered behind the compute stream: the median of
/// several rounds of `calls`.
template <class Work>
Time time_host(NcclCommunicator& communicator, int calls, const Work& work) {
  std::vector<Time> rounds;
  for (int round = 0; round < kBlocks; ++round) {
    communicator.barrier();
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) work();
    const Time took = since(begin);
    communicator.synchronize(communicator.stream());
    rounds.push_back(Time::picoseconds(took.ps() / calls));
  }
  return median_time(rounds);
}

int calls_for(Time one) {
  const std::int64_t wanted = kBlockTime.ps() / std::max<std::int64_t>(one.ps(), 1);
  return static_cast<int>(std::clamp<std::int64_t>(wanted, kFewest, kMost));
}

/// Ranks must agree on the number of calls, so it follows from what a fixed rate would give.
Time guess(Bytes size, int arrays) {
  constexpr Bandwidth kUsual{200'000'000'000};
  return Time::microseconds(10) + transfer_time(size, kUsual) * arrays;
}

/// What one collective reads and writes. `all` and `parts` are the root's.
struct Operands {
  at::Tensor flat, all;
  std::vector<at::Tensor> parts;
};

/// Arrays of up to a size, shared by all calls.
class Arrays {
 public:
  Arrays(const NcclCommunicator& communicator, Bytes most, bool with_root)
      : ranks_(communicator.size()),
        is_root_(with_root && communicator.rank() == 0),
        flat_(zeros(most, 1)) {
    if (is_root_) all_ = zeros(most, ranks_);
    check(cudaDeviceSynchronize(), "waiting for the device");
  }
  Operands of(Bytes size) const {
    Operands operands{.flat = flat_.narrow(0, 0, floats(size)), .all = {}, .parts = {}};
    if (is_root_) {
      operands.all = all_.narrow(0, 0, floats(size) * ranks_);
      operands.parts.assign(static_cast<std::size_t>(ranks_), operands.flat);
    }
    return operands;
  }

 private:
  static std::int64_t floats(Bytes size) { return size.count / std::int64_t{sizeof(float)}; }
  static at::Tensor zeros(Bytes size, int arrays) {
    return at::zeros({floats(size) * arrays}, at::device(at::kCUDA).dtype(at::kFloat));
  }

  int ranks_;
  bool is_root_;
  at::Tensor flat_, all_;
};

/// Behind what the communication stream holds.
void enqueue(NcclCommunicator& communicator, CollectiveKind kind, const Operands& operands) {
  const auto& [flat, all, parts] = operands;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return communicator.enqueue_all_reduce(flat);
    case CollectiveKind::broadcast:
      return communicator.enqueue_broadcast(flat, 0);
    case CollectiveKind::gather:
      return communicator.enqueue_gather(flat, all, 0);
    case CollectiveKind::scatter:
      return communicator.enqueue_scatter(parts, flat, 0);
    case CollectiveKind::reduce:
      break;
  }
  LOCKSTEP_ASSERT(false, "a collective that communicators have");
}

/// As a strategy calls it; the root waits for what it has gathered.
void call_ordered(NcclCommunicator& communicator, CollectiveKind kind, const Operands& operands) {
  const auto& [flat, all, parts] = operands;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return communicator.all_reduce(flat);
    case CollectiveKind::broadcast:
      return communicator.broadcast(flat, 0);
    case CollectiveKind::gather:
      communicator.gather(flat, all, 0);
      if (communicator.rank() == 0) communicator.join();
      return;
    case CollectiveKind::scatter:
      return communicator.scatter(parts, flat, 0);
    case CollectiveKind::reduce:
      break;
  }
  LOCKSTEP_ASSERT(false, "a collective that communicators have");
}

CollectiveTable empty_table(const NcclCommunicator& communicator, CollectiveKind kind) {
  return {.collective = std::string(to_string(kind)),
          .backend = communicator.backend(),
          .algorithm = "",
          .workers = communicator.size(),
          .topology = kOneHost,
          .points = {},
          .environment = {}};
}

CollectivePoint point(Bytes size, const std::vector<Time>& device, Time host) {
  const Quantiles spread = quantiles(device);
  return {.bytes = size, .p10 = spread.p10, .p50 = spread.p50, .p90 = spread.p90, .host = host};
}

}  // namespace

std::vector<Bytes> doubling_sizes(Bytes most) {
  std::vector<Bytes> sizes;
  for (Bytes size = kKiB; size <= most; size.count *= 2) sizes.push_back(size);
  return sizes;
}

CollectiveTable measure_collective_cuda(NcclCommunicator& communicator, CollectiveKind kind,
                                        const std::vector<Bytes>& sizes) {
  CollectiveTable table = empty_table(communicator, kind);
  const Arrays arrays(communicator, *std::ranges::max_element(sizes), false);
  for (const Bytes size : sizes) {
    const Operands operands = arrays.of(size);
    const auto call = [&] { enqueue(communicator, kind, operands); };
    const int calls = calls_for(guess(size, 1));
    time_block(communicator.stream(), kFewest, kIssueAllowance, call);  // warms up
    const Time host =
        time_host(communicator, calls, [&] { call_ordered(communicator, kind, operands); });
    table.points.push_back(
        point(size, time_blocks(communicator, calls, kIssueAllowance, call), host));
  }
  return table;
}

std::vector<CollectiveTable> measure_root_collectives_cuda(NcclCommunicator& communicator,
                                                           const std::vector<Bytes>& sizes) {
  constexpr auto kGather = CollectiveKind::gather, kScatter = CollectiveKind::scatter;
  const Bytes least = *std::ranges::min_element(sizes);
  const Arrays arrays(communicator, *std::ranges::max_element(sizes), true);
  const auto time_pairs = [&](Bytes gathered, Bytes scattered) {
    const Operands first = arrays.of(gathered), second = arrays.of(scattered);
    const auto pair = [&] {
      enqueue(communicator, kGather, first);
      enqueue(communicator, kScatter, second);
    };
    const int calls = calls_for(guess(std::max(gathered, scattered), communicator.size())) / 2;
    time_block(communicator.stream(), kFewest, kPairAllowance, pair);  // warms up
    return time_blocks(communicator, calls, kPairAllowance, pair);
  };
  const Time answer = Time::picoseconds(median_time(time_pairs(least, least)).ps() / 2);
  std::vector<CollectiveTable> tables;
  for (const CollectiveKind kind : {kGather, kScatter}) {
    CollectiveTable& table = tables.emplace_back(empty_table(communicator, kind));
    for (const Bytes size : sizes) {
      std::vector<Time> device =
          kind == kGather ? time_pairs(size, least) : time_pairs(least, size);
      for (Time& time : device) time = std::max(Time(), time - answer);
      const Operands operands = arrays.of(size);
      const Time host =
          time_host(communicator, kMost / 2, [&] { call_ordered(communicator, kind, operands); });
      table.points.push_back(point(size, device, host));
    }
  }
  return tables;
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
    time_block(device.stream(), kCalls, kIssueAllowance, copy);  // warms up
    std::vector<Time> on_device, on_host;
    for (int block = 0; block < kBlocks; ++block) {
      const BlockTime took = time_block(device.stream(), kCalls, kIssueAllowance, copy);
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

CopyTable measure_add_cuda(CudaDevice& device) {
  const c10::InferenceMode inference;
  constexpr int kCalls = 40;
  CopyTable table{.what = "add", .points = {}};
  for (Bytes size = kKiB; size <= kLargestOfRoot; size.count *= 8) {
    const std::int64_t count = size.count / std::int64_t{sizeof(float)};
    const at::Tensor all = at::zeros({2 * count}, at::device(at::kCUDA));
    at::Tensor sum = at::zeros({count}, at::device(at::kCUDA));
    const auto add = [&] {
      at::add_out(sum, all.narrow(0, 0, count), all.narrow(0, count, count));
    };
    time_block(device.stream(), kCalls, kIssueAllowance, add);  // warms up
    std::vector<Time> on_device, on_host;
    for (int block = 0; block < kBlocks; ++block) {
      const BlockTime took = time_block(device.stream(), kCalls, kIssueAllowance, add);
      on_device.push_back(took.device);
      on_host.push_back(took.host);
    }
    table.points.push_back({.bytes = size,
                            .tensors = 2,
                            .device = median_time(on_device),
                            .host = median_time(on_host)});
  }
  return table;
}

}  // namespace lockstep::runner
