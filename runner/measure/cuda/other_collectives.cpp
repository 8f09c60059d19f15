#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "runner/measure/cuda/call_timing.h"
#include "runner/measure/cuda/check.h"
#include "runner/measure/cuda/tables_cuda.h"

namespace lockstep::runner {
namespace {

/// `elements` floats of the whole array in `from`; `to` is as large.
struct Exchanged {
  float* from = nullptr;
  float* to = nullptr;
  std::size_t elements = 0;
  int rank = 0, ranks = 1;

  std::size_t part() const { return elements / static_cast<std::size_t>(ranks); }
  float* part_of(float* array, int owner) const {
    return array + part() * static_cast<std::size_t>(owner);
  }
};

ncclResult_t reduce(const Exchanged& x, ncclComm_t comm, cudaStream_t stream) {
  return ncclReduce(x.from, x.from, x.elements, ncclFloat32, ncclSum, 0, comm, stream);
}

ncclResult_t all_gather(const Exchanged& x, ncclComm_t comm, cudaStream_t stream) {
  return ncclAllGather(x.part_of(x.from, x.rank), x.from, x.part(), ncclFloat32, comm, stream);
}

ncclResult_t reduce_scatter(const Exchanged& x, ncclComm_t comm, cudaStream_t stream) {
  return ncclReduceScatter(x.from, x.part_of(x.from, x.rank), x.part(), ncclFloat32, ncclSum, comm,
                           stream);
}

/// The first of the two that failed.
ncclResult_t first_of(ncclResult_t one, ncclResult_t other) {
  return one != ncclSuccess ? one : other;
}

ncclResult_t exchange(const float* from, int to_rank, float* to, int from_rank,
                      std::size_t elements, ncclComm_t comm, cudaStream_t stream) {
  return first_of(ncclSend(from, elements, ncclFloat32, to_rank, comm, stream),
                  ncclRecv(to, elements, ncclFloat32, from_rank, comm, stream));
}

/// Also the part that a rank keeps, as in nccl-tests.
ncclResult_t all_to_all(const Exchanged& x, ncclComm_t comm, cudaStream_t stream) {
  ncclResult_t status = ncclGroupStart();
  for (int peer = 0; peer < x.ranks; ++peer) {
    status = first_of(status, exchange(x.part_of(x.from, peer), peer, x.part_of(x.to, peer), peer,
                                       x.part(), comm, stream));
  }
  return first_of(status, ncclGroupEnd());
}

ncclResult_t send_recv(const Exchanged& x, ncclComm_t comm, cudaStream_t stream) {
  const int next = (x.rank + 1) % x.ranks, before = (x.rank + x.ranks - 1) % x.ranks;
  const ncclResult_t begun = ncclGroupStart();
  const ncclResult_t status = exchange(x.from, next, x.to, before, x.elements, comm, stream);
  return first_of(begun, first_of(status, ncclGroupEnd()));
}

struct OtherCollective {
  std::string_view name;
  ncclResult_t (*call)(const Exchanged&, ncclComm_t, cudaStream_t) = nullptr;
};
constexpr std::array<OtherCollective, 5> kOthers{{{"reduce", reduce},
                                                  {"all_gather", all_gather},
                                                  {"reduce_scatter", reduce_scatter},
                                                  {"all_to_all", all_to_all},
                                                  {"send_recv", send_recv}}};

class OtherTimer {
 public:
  OtherTimer(NcclCommunicator& communicator, Bytes most)
      : communicator_(communicator), from_(array(most)), to_(array(most)) {
    check(cudaDeviceSynchronize(), "waiting for the device");
  }

  CollectivePoint operator()(const OtherCollective& collective, Bytes size) const {
    constexpr int kFewRows = 5;
    const Exchanged exchanged{.from = from_.data_ptr<float>(),
                              .to = to_.data_ptr<float>(),
                              .elements = static_cast<std::size_t>(size.count) / sizeof(float),
                              .rank = communicator_.rank(),
                              .ranks = communicator_.size()};
    const NcclCommunicator::Operation operation = [&](ncclComm_t comm, cudaStream_t stream) {
      return collective.call(exchanged, comm, stream);
    };
    const auto call = [&] { communicator_.enqueue(collective.name, operation); };
    const auto ordered = [&] {
      communicator_.follow_compute();
      call();
    };
    const int calls = calls_in_row(size);
    time_row(communicator_.stream(), kFewestCalls, kIssueAllowance, call);  // warms up
    const Time host = time_host(communicator_, kFewRows, calls, ordered);
    return point_of(size, time_rows(communicator_, kFewRows, calls, kIssueAllowance, call), host);
  }

 private:
  static at::Tensor array(Bytes most) {
    return at::zeros({most.count / std::int64_t{sizeof(float)}},
                     at::device(at::kCUDA).dtype(at::kFloat));
  }

  NcclCommunicator& communicator_;
  at::Tensor from_, to_;
};

}  // namespace

std::vector<CollectiveTable> measure_other_collectives_cuda(const GpuWorker& worker,
                                                            const TableSizes& sizes) {
  NcclCommunicator& communicator = *worker.communicator;
  const OtherTimer time(communicator, sizes.calibrated.back());
  std::vector<CollectiveTable> tables;
  for (const OtherCollective& collective : kOthers) {
    worker.beat();
    CollectiveTable& table = tables.emplace_back(empty_table(communicator, collective.name));
    for (const Bytes size : sizes.calibrated) table.points.push_back(time(collective, size));
    for (const Bytes size : sizes.held_out) table.held_out.push_back(time(collective, size));
  }
  return tables;
}

}  // namespace lockstep::runner
