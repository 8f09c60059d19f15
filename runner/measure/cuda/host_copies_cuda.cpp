#include "runner/measure/cuda/host_copies_cuda.h"

#include "runner/measure/cuda/check.h"

namespace lockstep::runner {

namespace {

void count(void* counter) {
  static_cast<Counter*>(counter)->add_one();
}

class CudaCopies final : public HostCopies {
 public:
  explicit CudaCopies(CudaDevice& device)
      : device_(device),
        stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true,
                                             static_cast<c10::DeviceIndex>(device.index()))) {
    check(cudaEventCreateWithFlags(&computed_, cudaEventDisableTiming), "creating an event");
    check(cudaEventCreateWithFlags(&copied_, cudaEventDisableTiming), "creating an event");
  }
  ~CudaCopies() override {
    finish();
    cudaEventDestroy(copied_);
    cudaEventDestroy(computed_);
  }
  CudaCopies(const CudaCopies&) = delete;
  CudaCopies& operator=(const CudaCopies&) = delete;

  void pin(const at::Tensor& host) override {
    check(cudaHostRegister(host.data_ptr(), host.nbytes(), cudaHostRegisterDefault),
          "pinning memory that workers share");
  }
  void unpin(const at::Tensor& host) override { cudaHostUnregister(host.data_ptr()); }

  void out(const at::Tensor& host, const at::Tensor& device, Counter& there) override {
    check(cudaEventRecord(computed_, device_.stream().stream()), "recording an event");
    check(cudaStreamWaitEvent(stream_.stream(), computed_), "ordering a copy");
    check(cudaMemcpyAsync(host.data_ptr(), device.data_ptr(), device.nbytes(),
                          cudaMemcpyDeviceToHost, stream_.stream()),
          "copying gradients to the host");
    check(cudaLaunchHostFunc(stream_.stream(), count, &there), "counting a copy");
  }

  void in(const at::Tensor& device, const at::Tensor& host) override {
    check(cudaMemcpyAsync(device.data_ptr(), host.data_ptr(), host.nbytes(), cudaMemcpyHostToDevice,
                          stream_.stream()),
          "copying gradients from the host");
    join();
  }

  void join() override {
    check(cudaEventRecord(copied_, stream_.stream()), "recording an event");
    check(cudaStreamWaitEvent(device_.stream().stream(), copied_), "ordering compute");
  }

  /// Who ends a run that failed calls it, too: what the device says then is known.
  void finish() override { cudaStreamSynchronize(stream_.stream()); }

 private:
  CudaDevice& device_;
  c10::cuda::CUDAStream stream_;
  cudaEvent_t computed_ = nullptr, copied_ = nullptr;
};

}  // namespace

std::unique_ptr<HostCopies> make_cuda_copies(CudaDevice& device) {
  return std::make_unique<CudaCopies>(device);
}

}  // namespace lockstep::runner
