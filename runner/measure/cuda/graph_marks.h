#pragma once

#include <cuda_runtime_api.h>

#include <unordered_set>

namespace lockstep::runner {

/// Counts the device work that a stream capture gathers, so that the work of a replay, which comes
/// in the same order on one stream, can be shared out to the layers that launched it.
class GraphMarks {
 public:
  /// `capturing`: a stream taking part in the capture.
  explicit GraphMarks(cudaStream_t capturing) : stream_(capturing) {}
  /// Kernels, copies and memsets captured since the last call. Throws RunError when the stream
  /// captures nothing.
  int new_work();

 private:
  cudaStream_t stream_;
  std::unordered_set<cudaGraphNode_t> known_;  ///< the order of cudaGraphGetNodes is not promised
};

}  // namespace lockstep::runner
