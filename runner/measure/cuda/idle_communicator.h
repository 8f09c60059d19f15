#pragma once

#include <c10/cuda/CUDAStream.h>

#include "runner/communicators/communicator.h"
#include "runner/measure/cuda/device_cuda.h"

namespace lockstep::runner {

/// A worker that is alone and communicates nothing, on a stream of its own like NCCL's: what is
/// left of a strategy is what it has its own host and device do. joins cost what they cost there,
/// an event and a wait.
class IdleCommunicator final : public Communicator {
 public:
  explicit IdleCommunicator(CudaDevice& device);  ///< outlives it
  ~IdleCommunicator() override;
  IdleCommunicator(const IdleCommunicator&) = delete;
  IdleCommunicator& operator=(const IdleCommunicator&) = delete;

  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string backend() const override { return "none"; }
  void all_reduce(const at::Tensor&) override {}
  void broadcast(const at::Tensor&, int) override {}
  void gather(const at::Tensor&, const at::Tensor&, int) override {}
  void scatter(const std::vector<at::Tensor>&, const at::Tensor&, int) override {}
  void join() override;
  void barrier() override {}
  std::vector<Transfer> take_transfers() override { return {}; }

 private:
  CudaDevice& device_;
  c10::cuda::CUDAStream stream_;
  cudaEvent_t join_ = nullptr;
};

}  // namespace lockstep::runner
