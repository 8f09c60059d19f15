#pragma once

#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include "sim/core/time.h"

namespace lockstep::runner {

/// A point in a stream that the device passes at a time of its own.
class DeviceMark {
 public:
  DeviceMark();
  ~DeviceMark();
  DeviceMark(DeviceMark&& other) noexcept;
  DeviceMark& operator=(DeviceMark&&) = delete;

  void record(c10::cuda::CUDAStream stream);
  /// From `earlier` to here; waits for the device to get here.
  Time since(const DeviceMark& earlier) const;

 private:
  cudaEvent_t event_ = nullptr;
};

/// Keeps `stream` busy for about `span` with one thread of one multiprocessor, so that the host can
/// queue work behind it and the device then runs that back to back. Ends by itself: a full launch
/// queue cannot deadlock on it.
void hold(c10::cuda::CUDAStream stream, Time span);

/// Kernels the host may launch ahead of the device before a launch blocks.
int measure_launch_queue();

/// From the end of a launch until a host that waits for the kernel goes on, less the kernel's own
/// time: what a synchronised step pays once.
Time measure_round_trip();

/// Median time of a fixed matrix product on the current device: how fast the device runs now.
Time reference_kernel_cuda();

}  // namespace lockstep::runner
