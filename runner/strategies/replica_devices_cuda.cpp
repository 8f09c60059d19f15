#include "runner/strategies/replica_devices_cuda.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/cuda/comm.h>
#include <torch/csrc/cuda/nccl.h>

#include <numeric>

#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

class GpuReplicas final : public ReplicaDevices {
 public:
  GpuReplicas(CudaDevice& first, int count) : first_(first), indices_(std::size_t(count)) {
    LOCKSTEP_ASSERT(first.index() == 0, "data_parallel begins with GPU 0");
    std::iota(indices_.begin(), indices_.end(), 0);
    for (int i = 1; i < count; ++i) others_.push_back(std::make_unique<CudaDevice>(i));
    enter(0);
  }
  ~GpuReplicas() override {
    // The other GPUs belong to other processes again.
    c10::cuda::CUDACachingAllocator::emptyCache();
  }
  GpuReplicas(const GpuReplicas&) = delete;
  GpuReplicas& operator=(const GpuReplicas&) = delete;

  int count() const override { return static_cast<int>(indices_.size()); }
  c10::Device torch(int device) const override { return on(device).torch(); }
  void enter(int device) override {
    c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
    c10::cuda::setCurrentCUDAStream(on(device).stream());
  }

  void broadcast(const at::Tensor& from, std::vector<at::Tensor>& to) override {
    torch::cuda::broadcast_out(from, to);
  }
  void reduce(const std::vector<at::Tensor>& parts, at::Tensor& sum) override {
    torch::cuda::nccl::reduce(parts, sum, /*root=*/0);
  }
  std::vector<at::Tensor> scatter(const at::Tensor& whole) override {
    require_shares(whole.chunk(count()), count());
    return torch::cuda::scatter(whole, indices_);
  }
  at::Tensor gather(const std::vector<at::Tensor>& parts) override {
    return torch::cuda::gather(parts, /*dim=*/0, /*destination_index=*/0);
  }

 private:
  const CudaDevice& on(int device) const {
    return device == 0 ? first_ : *others_[static_cast<std::size_t>(device) - 1];
  }

  CudaDevice& first_;
  std::vector<std::int64_t> indices_;
  std::vector<std::unique_ptr<CudaDevice>> others_;
};

}  // namespace

std::unique_ptr<ReplicaDevices> make_gpu_replicas(CudaDevice& first, int count) {
  return std::make_unique<GpuReplicas>(first, count);
}

}  // namespace lockstep::runner
