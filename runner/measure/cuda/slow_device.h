#pragma once

#include <functional>
#include <map>
#include <utility>

#include "runner/measure/cuda/device_cuda.h"
#include "runner/measure/straggler.h"

namespace lockstep::runner {

/// A GPU that is kept busy on its compute stream by one thread that spins there.
class SlowDevice final : public BusyDevice {
 public:
  explicit SlowDevice(CudaDevice& device);  ///< outlives it

  void hold(Moment duration) override;
  Moment work_before(Mark mark, int layer) const override;
  /// Runs a few steps with a recorder, and keeps the medians of what lies between their marks.
  void learn(const std::function<void(Recorder&)>& step);

 private:
  using Key = std::pair<Mark, int>;
  CudaDevice& device_;
  std::map<Key, Moment> work_;
};

}  // namespace lockstep::runner
