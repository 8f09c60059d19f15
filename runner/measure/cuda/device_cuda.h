#pragma once

#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <vector>

#include "runner/measure/device.h"

namespace lockstep::runner {

/// Events that are recorded, read and used again; creating one in a step would disturb it.
class EventPool {
 public:
  EventPool() = default;
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  /// The next event, valid until clear() and the take() that gives it out again.
  cudaEvent_t take();
  cudaEvent_t at(std::size_t index) const { return events_[index]; }
  std::size_t taken() const { return taken_; }
  void clear() { taken_ = 0; }

 private:
  std::vector<cudaEvent_t> events_;
  std::size_t taken_ = 0;
};

/// One GPU, trained on through a stream of its own from the very start: gradient accumulators
/// remember the stream they were made on, and the legacy default stream cannot be captured.
/// Making it selects the GPU and the stream for the calling thread.
class CudaDevice : public Device {
 public:
  explicit CudaDevice(int index);
  ~CudaDevice() override;

  c10::Device torch() const override;
  std::string name() const override;
  void synchronize() override;
  std::size_t stamp() override;
  Moment moment(std::size_t stamp) override;
  void clear_stamps() override;
  std::unique_ptr<Graph> capture(const std::function<void()>& step) override;
  std::int64_t take_peak_bytes() override;
  /// Memory in use now, by everything in this process.
  std::int64_t allocated_bytes() const;
  /// Gives memory that is kept for later steps, or was a graph's that is gone, back to the GPU.
  void release_memory();

  /// Stamps cost the device about a microsecond each, so they are taken only while this is on. Off
  /// at first; while off, stamp() returns 0 and moment() is 0.
  void set_stamping(bool on) { stamping_ = on; }
  bool stamping() const { return stamping_; }
  /// When `event`, recorded since the last clear_stamps(), was passed; waits for it.
  Moment moment_of(cudaEvent_t event) const;

  int index() const { return index_; }
  c10::cuda::CUDAStream stream() const { return stream_; }

 private:
  int index_;
  c10::cuda::CUDAStream stream_;
  EventPool stamps_;
  cudaEvent_t epoch_ = nullptr;  ///< zero of the clock: times are floats, exact only near it
  bool stamping_ = false;
};

/// How many GPUs this process sees.
int gpu_count();

}  // namespace lockstep::runner
