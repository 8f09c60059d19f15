#include "runner/measure/cuda/slow_device.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runner/measure/cuda/timing.h"
#include "runner/measure/statistics.h"

namespace lockstep::runner {
namespace {

constexpr int kSteps = 6;  ///< the first one creates the events

/// Stamps every mark. Those of backward come from a thread of autograd's, while the other waits.
class LayerStamps final : public Recorder {
 public:
  struct Stamped {
    Mark mark;
    int layer;
    std::size_t stamp;
  };
  explicit LayerStamps(CudaDevice& device) : device_(device) {}
  void mark(Mark mark, int layer) override { marks_.push_back({mark, layer, device_.stamp()}); }
  const std::vector<Stamped>& marks() const { return marks_; }

 private:
  CudaDevice& device_;
  std::vector<Stamped> marks_;
};

}  // namespace

SlowDevice::SlowDevice(CudaDevice& device) : device_(device) {
  runner::hold(device.stream(), Time::microseconds(1));  // finds out how fast it spins
}

void SlowDevice::hold(Moment duration) {
  runner::hold(device_.stream(), Time::nanoseconds(duration));
}

Moment SlowDevice::work_before(Mark mark, int layer) const {
  const auto found = work_.find({mark, layer});
  return found == work_.end() ? 0 : found->second;
}

void SlowDevice::learn(const std::function<void(Recorder&)>& step) {
  std::map<Key, std::vector<std::int64_t>> seen;
  device_.set_stamping(true);
  for (int i = 0; i < kSteps; ++i) {
    device_.clear_stamps();
    LayerStamps stamps(device_);
    step(stamps);
    device_.synchronize();
    const auto& marks = stamps.marks();
    for (std::size_t m = 1; i > 0 && m < marks.size(); ++m) {
      const Moment took = device_.moment(marks[m].stamp) - device_.moment(marks[m - 1].stamp);
      seen[{marks[m].mark, marks[m].layer}].push_back(std::max<Moment>(0, took));
    }
  }
  device_.set_stamping(false);
  for (const auto& [key, times] : seen) work_[key] = median_ns(times);
}

}  // namespace lockstep::runner
