#include "runner/communicators/nccl.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdlib>

#include "runner/measure/clock.h"
#include "runner/measure/cuda/check.h"

namespace lockstep::runner {
namespace {

constexpr auto kLook = std::chrono::milliseconds(100);  ///< how often the watchdog looks
constexpr auto kAbortPatience = std::chrono::seconds(4);

void check_nccl(ncclResult_t status, std::string_view doing) {
  if (status != ncclSuccess) {
    throw RunError(fmt::format("{}: NCCL: {}", doing, ncclGetErrorString(status)));
  }
}

/// Rank 0 names the communicator, the store tells the others.
ncclUniqueId exchange_id(Store& store, int rank, std::chrono::seconds patience) {
  const std::string key = "lockstep/nccl_id";
  ncclUniqueId id{};
  if (rank == 0) {
    check_nccl(ncclGetUniqueId(&id), "naming the communicator");
    store.set(key, std::string(id.internal, sizeof id.internal));
    return id;
  }
  const std::string bytes = store.get(key, patience);
  LOCKSTEP_ASSERT(bytes.size() == sizeof id.internal, "an NCCL id has a fixed size");
  std::copy(bytes.begin(), bytes.end(), id.internal);
  return id;
}

ncclDataType_t nccl_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return ncclFloat32;
    case at::kDouble:
      return ncclFloat64;
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kLong:
      return ncclInt64;
    case at::kInt:
      return ncclInt32;
    default:
      throw RunError(fmt::format("no collective for arrays of {}", c10::toString(type)));
  }
}

std::size_t count_of(const at::Tensor& flat) {
  LOCKSTEP_ASSERT(flat.is_contiguous(), "a collective takes a contiguous array");
  return static_cast<std::size_t>(flat.numel());
}

cudaEvent_t make_order_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "creating an event");
  return event;
}

}  // namespace

/// Tells the watchdog that the host is inside a call that a dead peer can hold up.
class NcclCommunicator::Watched {
 public:
  explicit Watched(NcclCommunicator& owner) : owner_(owner) { owner_.waiting_since_ = host_now(); }
  ~Watched() { owner_.waiting_since_ = 0; }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  NcclCommunicator& owner_;
};

NcclCommunicator::NcclCommunicator(Store& store, int rank, int size, CudaDevice& device,
                                   std::chrono::seconds patience)
    : rank_(rank),
      size_(size),
      device_(device),
      patience_(patience),
      stream_(c10::cuda::getStreamFromPool(true, device.stream().device_index())) {
  check_nccl(ncclCommInitRank(&comm_, size, exchange_id(store, rank, patience), rank),
             "meeting the other GPUs");
  fork_ = make_order_event();
  join_ = make_order_event();
  token_ = at::zeros({1}, at::TensorOptions(device.torch()));
  device.synchronize();
  watchdog_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

NcclCommunicator::~NcclCommunicator() {
  watchdog_.request_stop();
  if (watchdog_.joinable()) watchdog_.join();
  if (!aborted_) ncclCommDestroy(comm_);
  cudaEventDestroy(fork_);
  cudaEventDestroy(join_);
}

/// Makes no CUDA call: some are forbidden while another thread captures.
void NcclCommunicator::watch(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::this_thread::sleep_for(kLook);
    ncclResult_t state = ncclSuccess;
    ncclCommGetAsyncError(comm_, &state);
    if (state != ncclSuccess && state != ncclInProgress) return give_up(ncclGetErrorString(state));
    const std::int64_t since = waiting_since_;
    if (since != 0 && std::chrono::nanoseconds(host_now() - since) > patience_) {
      return give_up(fmt::format("a peer did not answer for {} s", patience_.count()));
    }
  }
}

void NcclCommunicator::give_up(const std::string& why) {
  fmt::print(stderr, "lockstep-measure: rank {}: NCCL: {}\n", rank_, why);
  aborted_ = true;
  ncclCommAbort(comm_);
  std::this_thread::sleep_for(kAbortPatience);
  if (waiting_since_ != 0) std::_Exit(static_cast<int>(ExitCode::run_failed));
}

void NcclCommunicator::throw_if_aborted() const {
  if (aborted_) throw RunError(fmt::format("rank {}: the other GPUs do not answer", rank_));
}

void NcclCommunicator::fork() {
  check(cudaEventRecord(fork_, device_.stream().stream()), "recording an event");
  check(cudaStreamWaitEvent(stream_.stream(), fork_), "waiting for an event");
}

void NcclCommunicator::stamp() {
  if (!device_.stamping()) return;
  check(cudaEventRecord(stamps_.take(), stream_.stream()), "recording an event");
}

void NcclCommunicator::enqueue_all_reduce(const at::Tensor& flat) {
  throw_if_aborted();
  const Watched watched(*this);
  check_nccl(ncclAllReduce(flat.data_ptr(), flat.data_ptr(), count_of(flat),
                           nccl_type(flat.scalar_type()), ncclSum, comm_, stream_.stream()),
             "all-reduce");
}

void NcclCommunicator::enqueue_broadcast(const at::Tensor& flat, int root) {
  throw_if_aborted();
  const Watched watched(*this);
  check_nccl(ncclBroadcast(flat.data_ptr(), flat.data_ptr(), count_of(flat),
                           nccl_type(flat.scalar_type()), root, comm_, stream_.stream()),
             "broadcast");
}

void NcclCommunicator::enqueue_gather(const at::Tensor& flat, const at::Tensor& all, int root) {
  throw_if_aborted();
  const Watched watched(*this);
  const ncclDataType_t type = nccl_type(flat.scalar_type());
  check_nccl(ncclGroupStart(), "gather");
  check_nccl(ncclSend(flat.data_ptr(), count_of(flat), type, root, comm_, stream_.stream()),
             "gather");
  for (int peer = 0; rank_ == root && peer < size_; ++peer) {
    char* part =
        static_cast<char*>(all.data_ptr()) + static_cast<std::size_t>(peer) * flat.nbytes();
    check_nccl(ncclRecv(part, count_of(flat), type, peer, comm_, stream_.stream()), "gather");
  }
  check_nccl(ncclGroupEnd(), "gather");
}

void NcclCommunicator::enqueue_scatter(const std::vector<at::Tensor>& parts, const at::Tensor& flat,
                                       int root) {
  throw_if_aborted();
  const Watched watched(*this);
  const ncclDataType_t type = nccl_type(flat.scalar_type());
  check_nccl(ncclGroupStart(), "scatter");
  for (int peer = 0; rank_ == root && peer < size_; ++peer) {
    const at::Tensor& part = parts.at(static_cast<std::size_t>(peer));
    check_nccl(ncclSend(part.data_ptr(), count_of(flat), type, peer, comm_, stream_.stream()),
               "scatter");
  }
  check_nccl(ncclRecv(flat.data_ptr(), count_of(flat), type, root, comm_, stream_.stream()),
             "scatter");
  check_nccl(ncclGroupEnd(), "scatter");
}

void NcclCommunicator::enqueue(std::string_view what, const Operation& operation) {
  throw_if_aborted();
  const Watched watched(*this);
  check_nccl(operation(comm_, stream_.stream()), what);
}

void NcclCommunicator::note(CollectiveKind kind, const at::Tensor& flat) {
  if (device_.stamping()) {
    transfers_.push_back({kind, {static_cast<std::int64_t>(flat.nbytes())}});
  }
}

void NcclCommunicator::all_reduce(const at::Tensor& flat) {
  fork();
  stamp();
  enqueue_all_reduce(flat);
  stamp();
  note(CollectiveKind::all_reduce, flat);
}

void NcclCommunicator::broadcast(const at::Tensor& flat, int root) {
  fork();
  stamp();
  enqueue_broadcast(flat, root);
  stamp();
  note(CollectiveKind::broadcast, flat);
}

void NcclCommunicator::gather(const at::Tensor& flat, const at::Tensor& all, int root) {
  fork();
  stamp();
  enqueue_gather(flat, all, root);
  stamp();
  note(CollectiveKind::gather, flat);
}

void NcclCommunicator::scatter(const std::vector<at::Tensor>& parts, const at::Tensor& flat,
                               int root) {
  fork();
  stamp();
  enqueue_scatter(parts, flat, root);
  stamp();
  note(CollectiveKind::scatter, flat);
}

void NcclCommunicator::join() {
  check(cudaEventRecord(join_, stream_.stream()), "recording an event");
  check(cudaStreamWaitEvent(device_.stream().stream(), join_), "waiting for an event");
}

void NcclCommunicator::rejoin() {
  fork();
  join();
}

void NcclCommunicator::synchronize(c10::cuda::CUDAStream stream) {
  const cudaError_t status = [&] {
    const Watched watched(*this);
    return cudaStreamSynchronize(stream.stream());
  }();
  throw_if_aborted();
  check(status, "waiting for the other GPUs");
}

void NcclCommunicator::barrier() {
  fork();
  enqueue_all_reduce(token_);
  join();
  synchronize(stream_);
}

std::vector<Transfer> NcclCommunicator::take_transfers() {
  synchronize(stream_);
  std::vector<Transfer> taken = std::move(transfers_);
  transfers_.clear();
  for (std::size_t i = 0; i < taken.size(); ++i) {
    taken[i].launch = device_.moment_of(stamps_.at(2 * i));
    taken[i].done = device_.moment_of(stamps_.at(2 * i + 1));
  }
  stamps_.clear();
  return taken;
}

}  // namespace lockstep::runner
