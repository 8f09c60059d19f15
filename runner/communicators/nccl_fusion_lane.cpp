#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <utility>

#include "runner/communicators/fusion_lane.h"
#include "runner/communicators/nccl.h"
#include "runner/measure/cuda/check.h"

namespace lockstep::runner {

namespace {

/// Gradients are events in the compute stream; copies and NCCL's kernels go to NCCL's stream, which
/// waits for none of compute's other work.
class NcclLane final : public FusionLane {
 public:
  NcclLane(NcclCommunicator& communicator, Communicator& control, CudaDevice& device,
           std::size_t gradients)
      : communicator_(communicator), control_(control), device_(device), made_(gradients) {
    for (cudaEvent_t& event : made_) check(cudaEventCreate(&event), "creating an event");
  }
  ~NcclLane() override {
    for (const cudaEvent_t event : made_) cudaEventDestroy(event);
  }
  NcclLane(const NcclLane&) = delete;
  NcclLane& operator=(const NcclLane&) = delete;

  Communicator& control() override { return control_; }
  void note(int gradient) override {
    check(cudaEventRecord(made_[static_cast<std::size_t>(gradient)], device_.stream().stream()),
          "recording an event");
  }
  void await(const std::vector<int>& gradients) override {
    for (const int gradient : gradients) {
      check(cudaEventSynchronize(made_[static_cast<std::size_t>(gradient)]),
            "waiting for a gradient");
    }
  }
  Moment made(int gradient) override {
    return device_.stamping() ? device_.moment_of(made_[static_cast<std::size_t>(gradient)]) : 0;
  }
  void reduce(const at::Tensor& flat, const std::function<void()>& before,
              const std::function<void()>& after) override {
    const c10::cuda::CUDAStreamGuard on_lane(communicator_.stream());
    before();
    communicator_.all_reduce_beside(flat);
    after();
  }
  void join() override { communicator_.join(); }
  std::vector<Transfer> take_transfers() override {
    control_.take_transfers();
    return communicator_.take_transfers();
  }

 private:
  NcclCommunicator& communicator_;
  Communicator& control_;
  CudaDevice& device_;
  std::vector<cudaEvent_t> made_;
};

}  // namespace

void NcclCommunicator::all_reduce_beside(const at::Tensor& flat) {
  stamp();
  enqueue_all_reduce(flat);
  stamp();
  note(CollectiveKind::all_reduce, flat);
}

std::unique_ptr<FusionLane> NcclCommunicator::make_lane(std::size_t gradients) {
  if (control_ == nullptr) throw RunError("horovod's hosts have nothing to agree over");
  return std::make_unique<NcclLane>(*this, *control_, device_, gradients);
}

}  // namespace lockstep::runner
