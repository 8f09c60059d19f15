#include "runner/measure/cuda/tables_cuda.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "runner/measure/cuda/call_timing.h"
#include "runner/measure/cuda/check.h"
#include "runner/measure/cuda/other_launches.h"
#include "sim/core/error.h"

namespace lockstep::runner {
namespace {

const Time kPairAllowance = Time::microseconds(120);  ///< the host gets ahead by this much a pair

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
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
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
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      break;
  }
  LOCKSTEP_ASSERT(false, "a collective that communicators have");
}

/// What a call takes the host behind launches of other kinds, beyond what it takes in a row: of
/// calls one by one the median, then the difference.
Time time_between(const GpuWorker& worker, CollectiveKind kind, const Arrays& arrays) {
  constexpr Bytes kUsual{kMiB.count};
  constexpr int kCalls = 8;
  NcclCommunicator& communicator = *worker.communicator;
  const Operands operands = arrays.of(kUsual);
  const auto call = [&] { call_ordered(communicator, kind, operands); };
  const OtherLaunches others;
  std::vector<Time> times;
  for (int round = 0; round < kRows; ++round) {
    worker.barrier();
    for (int i = 0; i < kCalls; ++i) {
      others.issue();
      const auto begin = HostClock::now();
      call();
      times.push_back(since(begin));
    }
    worker.synchronize();
    communicator.synchronize(communicator.stream());
  }
  return std::max(Time{}, median_time(times) - time_host(communicator, kRows, kCalls, call));
}

/// One size after another of one collective.
class SizeTimer {
 public:
  SizeTimer(const GpuWorker& worker, CollectiveKind kind, const Arrays& arrays)
      : worker_(worker), kind_(kind), arrays_(arrays) {}

  AgreedPoint operator()(Bytes size) const {
    constexpr int kHostRows = 5;
    NcclCommunicator& communicator = *worker_.communicator;
    const Operands operands = arrays_.of(size);
    const auto call = [&] { enqueue(communicator, kind_, operands); };
    const int calls = calls_in_row(size);
    time_row(communicator.stream(), kFewestCalls, kIssueAllowance, call);  // warms up
    const Time host = time_host(communicator, kHostRows, calls,
                                [&] { call_ordered(communicator, kind_, operands); });
    const auto device = time_rows(communicator, kRows, calls, kIssueAllowance, call);
    return {.point = point_of(size, device, host), .agreed = worker_.agree(median_time(device))};
  }

 private:
  const GpuWorker& worker_;
  CollectiveKind kind_;
  const Arrays& arrays_;
};

}  // namespace

CollectiveTable measure_collective_cuda(const GpuWorker& worker, CollectiveKind kind,
                                        const TableSizes& sizes) {
  const Arrays arrays(*worker.communicator, sizes.calibrated.back(), false);
  const SizeTimer time(worker, kind, arrays);
  time(sizes.calibrated.front());  // the first rows of a table take a tenth longer
  std::vector<AgreedPoint> points;
  for (const Bytes size : sizes.calibrated) points.push_back(time(size));
  if (sizes.refined) refine(points, time);
  CollectiveTable table = empty_table(*worker.communicator, to_string(kind));
  for (const AgreedPoint& each : points) table.points.push_back(each.point);
  for (const Bytes size : sizes.held_out) table.held_out.push_back(time(size).point);
  table.call_between = time_between(worker, kind, arrays);
  return table;
}

std::vector<CollectiveTable> measure_root_collectives_cuda(const GpuWorker& worker,
                                                           const std::vector<Bytes>& sizes) {
  constexpr auto kGather = CollectiveKind::gather, kScatter = CollectiveKind::scatter;
  NcclCommunicator& communicator = *worker.communicator;
  const Bytes least = *std::ranges::min_element(sizes);
  const Arrays arrays(communicator, *std::ranges::max_element(sizes), true);
  const auto time_pairs = [&](Bytes gathered, Bytes scattered) {
    const Operands first = arrays.of(gathered), second = arrays.of(scattered);
    const auto pair = [&] {
      enqueue(communicator, kGather, first);
      enqueue(communicator, kScatter, second);
    };
    const int pairs = calls_in_row(std::max(gathered, scattered), communicator.size()) / 2;
    time_row(communicator.stream(), kFewestCalls, kPairAllowance, pair);  // warms up
    return time_rows(communicator, kRows, pairs, kPairAllowance, pair);
  };
  const Time answer = Time::picoseconds(median_time(time_pairs(least, least)).ps() / 2);
  std::vector<CollectiveTable> tables;
  for (const CollectiveKind kind : {kGather, kScatter}) {
    CollectiveTable& table = tables.emplace_back(empty_table(communicator, to_string(kind)));
    for (const Bytes size : sizes) {
      std::vector<Time> device =
          kind == kGather ? time_pairs(size, least) : time_pairs(least, size);
      for (Time& time : device) time = std::max(Time(), time - answer);
      const Operands operands = arrays.of(size);
      const int calls = calls_in_row(size, communicator.size());
      const Time host = time_host(communicator, kRows, calls,
                                  [&] { call_ordered(communicator, kind, operands); });
      table.points.push_back(point_of(size, device, host));
    }
    table.call_between = time_between(worker, kind, arrays);
  }
  return tables;
}

}  // namespace lockstep::runner
