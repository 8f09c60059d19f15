#include "runner/measure/cuda/one_process.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <fmt/format.h>

#include <chrono>

#include "runner/strategies/replica_devices_cuda.h"

namespace lockstep::runner {

void OneProcess::run(const std::function<void(ReplicaDevices&)>& work) {
  constexpr std::chrono::minutes kMost{5};
  worker_.barrier();
  c10::cuda::CUDACachingAllocator::emptyCache();
  worker_.barrier();  // now there is room
  const std::string key = fmt::format("GPUs given back {}", ++times_);
  if (worker_.rank() > 0) {
    store_->get(key, kMost);
    return;
  }
  try {
    const auto devices = make_gpu_replicas(worker_.device, worker_.size());
    work(*devices);
  } catch (...) {
    store_->set(key, "failed");
    throw;
  }
  store_->set(key, "done");
}

}  // namespace lockstep::runner
