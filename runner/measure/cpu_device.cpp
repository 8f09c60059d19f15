#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <fstream>
#include <string>
#include <vector>

#include "runner/measure/clock.h"
#include "runner/measure/device.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

/// The host computes and keeps the time, so a stamp is the time itself.
class CpuDevice final : public Device {
 public:
  explicit CpuDevice(int threads) : threads_(threads) { at::set_num_threads(threads); }

  c10::Device torch() const override { return c10::kCPU; }
  std::string name() const override {
    return fmt::format("{} thread{}", threads_, threads_ == 1 ? "" : "s");
  }
  void synchronize() override {}
  std::size_t stamp() override {
    stamps_.push_back(host_now());
    return stamps_.size() - 1;
  }
  Moment moment(std::size_t stamp) override { return stamps_.at(stamp); }
  void clear_stamps() override { stamps_.clear(); }
  std::unique_ptr<Graph> capture(const std::function<void()>&) override {
    throw RunError("a CPU worker has no graphs to capture");
  }
  std::int64_t take_peak_bytes() override {
    std::ifstream status("/proc/self/status");
    std::int64_t peak_kib = 0;
    for (std::string word; status >> word;) {
      if (word == "VmHWM:") status >> peak_kib;
    }
    std::ofstream("/proc/self/clear_refs") << "5";  // starts a new peak (proc(5))
    return peak_kib * 1024;
  }

 private:
  int threads_;
  std::vector<Moment> stamps_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(int threads) {
  return std::make_unique<CpuDevice>(threads);
}

}  // namespace lockstep::runner
