#include "runner/measure/cuda/idle_communicator.h"

#include "runner/measure/cuda/check.h"

namespace lockstep::runner {

IdleCommunicator::IdleCommunicator(CudaDevice& device)
    : device_(device), stream_(c10::cuda::getStreamFromPool(true, device.stream().device_index())) {
  check(cudaEventCreateWithFlags(&join_, cudaEventDisableTiming), "creating an event");
}

IdleCommunicator::~IdleCommunicator() {
  cudaEventDestroy(join_);
}

void IdleCommunicator::join() {
  check(cudaEventRecord(join_, stream_.stream()), "recording an event");
  check(cudaStreamWaitEvent(device_.stream().stream(), join_), "waiting for an event");
}

}  // namespace lockstep::runner
