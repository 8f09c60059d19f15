#include "runner/measure/cuda/device_cuda.h"

#include <ATen/Context.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <cmath>

#include "runner/measure/cuda/check.h"

namespace lockstep::runner {

EventPool::~EventPool() {
  for (const cudaEvent_t event : events_) cudaEventDestroy(event);
}

cudaEvent_t EventPool::take() {
  if (taken_ == events_.size()) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "creating an event");
    events_.push_back(event);
  }
  return events_[taken_++];
}

namespace {

class CudaGraph : public Graph {
 public:
  explicit CudaGraph(const std::function<void()>& step) {
    graph_.capture_begin();
    try {
      step();
    } catch (...) {
      end_failed_capture();  // else every later call on the stream fails for it
      throw;
    }
    graph_.capture_end();
  }
  void replay() override { graph_.replay(); }

 private:
  void end_failed_capture() noexcept {
    try {
      graph_.capture_end();
    } catch (const std::exception&) {
      cudaGetLastError();  // what matters is the error that broke the capture
    }
  }
  at::cuda::CUDAGraph graph_;
};

c10::cuda::CUDAStream select_stream(int index) {
  const auto device = static_cast<c10::DeviceIndex>(index);
  c10::cuda::set_device(device);
  const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool(false, device);
  c10::cuda::setCurrentCUDAStream(stream);
  return stream;
}

}  // namespace

CudaDevice::CudaDevice(int index) : index_(index), stream_(select_stream(index)) {
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  at::globalContext().setBenchmarkCuDNN(true);
  check(cudaEventCreate(&epoch_), "creating an event");
  clear_stamps();
}

CudaDevice::~CudaDevice() {
  cudaEventDestroy(epoch_);
}

c10::Device CudaDevice::torch() const {
  return {c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(index_)};
}

std::string CudaDevice::name() const {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index_), "asking for the GPU's name");
  return properties.name;
}

void CudaDevice::synchronize() {
  check(cudaStreamSynchronize(stream_.stream()), "waiting for the device");
}

std::size_t CudaDevice::stamp() {
  if (!stamping_) return 0;
  check(cudaEventRecord(stamps_.take(), stream_.stream()), "recording an event");
  return stamps_.taken() - 1;
}

Moment CudaDevice::moment(std::size_t stamp) {
  return stamp < stamps_.taken() ? moment_of(stamps_.at(stamp)) : 0;
}

Moment CudaDevice::moment_of(cudaEvent_t event) const {
  check(cudaEventSynchronize(event), "waiting for the device");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, epoch_, event), "reading an event");
  return std::llround(static_cast<double>(milliseconds) * 1e6);
}

void CudaDevice::clear_stamps() {
  stamps_.clear();
  check(cudaEventRecord(epoch_, stream_.stream()), "recording an event");
}

std::unique_ptr<Graph> CudaDevice::capture(const std::function<void()>& step) {
  synchronize();
  release_memory();  // a graph has memory of its own, and a capture cannot take what is kept
  return std::make_unique<CudaGraph>(step);
}

namespace {

constexpr auto kAllPools = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

c10::CachingAllocator::Stat allocated(int index) {
  return c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(index))
      .allocated_bytes[kAllPools];
}

}  // namespace

std::int64_t CudaDevice::take_peak_bytes() {
  const std::int64_t peak = allocated(index_).peak;
  c10::cuda::CUDACachingAllocator::resetPeakStats(static_cast<c10::DeviceIndex>(index_));
  return peak;
}

void CudaDevice::release_memory() {
  c10::cuda::CUDACachingAllocator::emptyCache();
}

std::int64_t CudaDevice::allocated_bytes() const {
  return allocated(index_).current;
}

int gpu_count() {
  return static_cast<int>(c10::cuda::device_count());
}

}  // namespace lockstep::runner
