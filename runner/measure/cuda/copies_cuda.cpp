#include "runner/measure/cuda/copies_cuda.h"

#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/add.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <functional>

#include "runner/measure/cuda/call_timing.h"
#include "runner/measure/cuda/check.h"

namespace lockstep::runner {
namespace {

/// Medians of several rows of `calls` calls.
template <class Work>
CopyPoint time_copies(CudaDevice& device, Bytes bytes, int tensors, int calls, const Work& work) {
  time_row(device.stream(), calls, kIssueAllowance, work);  // warms up
  std::vector<Time> on_device, on_host;
  for (int row = 0; row < kRows; ++row) {
    const CallTime took = time_row(device.stream(), calls, kIssueAllowance, work);
    on_device.push_back(took.device);
    on_host.push_back(took.host);
  }
  return {.bytes = bytes,
          .tensors = tensors,
          .device = median_time(on_device),
          .host = median_time(on_host)};
}

}  // namespace

CopyTable measure_bucket_in_cuda(CudaDevice& device) {
  const c10::InferenceMode inference;
  constexpr int kCalls = 10;
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
    table.points.push_back(time_copies(device, {each * tensors * std::int64_t{sizeof(float)}},
                                       tensors, kCalls,
                                       [&] { at::_foreach_copy_(views, gradients); }));
  }
  return table;
}

CopyTable measure_add_cuda(CudaDevice& device) {
  const c10::InferenceMode inference;
  constexpr Bytes kMost{256 * kMiB.count};
  CopyTable table{.what = "add", .points = {}};
  for (Bytes size = kKiB; size <= kMost; size.count *= 8) {
    const std::int64_t count = size.count / std::int64_t{sizeof(float)};
    const at::Tensor all = at::zeros({2 * count}, at::device(at::kCUDA));
    at::Tensor sum = at::zeros({count}, at::device(at::kCUDA));
    table.points.push_back(time_copies(device, size, 2, kMostCalls, [&] {
      at::add_out(sum, all.narrow(0, 0, count), all.narrow(0, count, count));
    }));
  }
  return table;
}

namespace {

constexpr Bytes kLeastTransfer{16 * 1024};
constexpr Bytes kMostTransfer{64 * kMiB.count};

/// Memory of one kind, freed with it.
class Memory {
 public:
  using Free = cudaError_t (*)(void*);
  Memory(void* address, Free free) : address_(address), free_(free) {}
  ~Memory() { free_(address_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void* get() const { return address_; }

  static Memory on_device(Bytes size) {
    void* address = nullptr;
    check(cudaMalloc(&address, static_cast<std::size_t>(size.count)), "memory for copies");
    return {address, cudaFree};
  }
  static Memory pinned(Bytes size) {
    void* address = nullptr;
    check(cudaMallocHost(&address, static_cast<std::size_t>(size.count)), "memory for copies");
    return {address, cudaFreeHost};
  }

 private:
  void* address_;
  Free free_;
};

using Copy = std::function<cudaError_t(std::size_t bytes, cudaStream_t stream)>;

CopyTable time_transfers(CudaDevice& device, const std::string& what, const Copy& copy) {
  constexpr int kCalls = 4;
  CopyTable table{.what = what, .points = {}};
  for (Bytes size = kLeastTransfer; size <= kMostTransfer; size.count *= 8) {
    table.points.push_back(time_copies(device, size, 1, kCalls, [&] {
      check(copy(static_cast<std::size_t>(size.count), device.stream().stream()), "copying");
    }));
  }
  return table;
}

/// From and to memory of the host.
void add_host_transfers(CudaDevice& device, const std::string& suffix, void* host,
                        std::vector<CopyTable>& tables) {
  const Memory own = Memory::on_device(kMostTransfer);
  const auto to = [&](std::size_t bytes, cudaStream_t stream) {
    return cudaMemcpyAsync(own.get(), host, bytes, cudaMemcpyHostToDevice, stream);
  };
  const auto from = [&](std::size_t bytes, cudaStream_t stream) {
    return cudaMemcpyAsync(host, own.get(), bytes, cudaMemcpyDeviceToHost, stream);
  };
  tables.push_back(time_transfers(device, "host_to_device" + suffix, to));
  tables.push_back(time_transfers(device, "device_to_host" + suffix, from));
}

/// Selects a GPU for a while.
class Selected {
 public:
  explicit Selected(int index) {
    check(cudaGetDevice(&before_), "asking for the device");
    check(cudaSetDevice(index), "selecting a device");
  }
  ~Selected() { cudaSetDevice(before_); }
  Selected(const Selected&) = delete;
  Selected& operator=(const Selected&) = delete;

 private:
  int before_ = 0;
};

/// Direct where the two can reach each other's memory.
void allow_peer(int peer) {
  const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled || status == cudaErrorPeerAccessUnsupported) {
    cudaGetLastError();  // neither is one
    return;
  }
  check(status, "reaching another GPU");
}

CopyTable peer_transfers(CudaDevice& device, int peer) {
  const Memory own = Memory::on_device(kMostTransfer);
  const Memory other = [peer] {
    const Selected selected(peer);
    return Memory::on_device(kMostTransfer);
  }();
  allow_peer(peer);
  return time_transfers(device, "device_to_device", [&](std::size_t bytes, cudaStream_t stream) {
    return cudaMemcpyPeerAsync(other.get(), peer, own.get(), device.index(), bytes, stream);
  });
}

}  // namespace

std::vector<CopyTable> measure_transfers_cuda(CudaDevice& device) {
  std::vector<CopyTable> tables;
  const Memory pinned = Memory::pinned(kMostTransfer);
  add_host_transfers(device, "", pinned.get(), tables);
  std::vector<char> pageable(static_cast<std::size_t>(kMostTransfer.count));
  add_host_transfers(device, "_pageable", pageable.data(), tables);
  if (gpu_count() > 1) {
    tables.push_back(peer_transfers(device, (device.index() + 1) % gpu_count()));
  }
  return tables;
}

}  // namespace lockstep::runner
