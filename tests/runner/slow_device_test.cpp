// A worker that is slowed where its device works behind its host: for how long the device is held.
#include <vector>

#include "runner/measure/straggler.h"
#include "tests/catch.h"

namespace lockstep::runner {
namespace {

/// Every layer takes 10 us, every part of a step without layers 200 us.
class NotedDevice final : public BusyDevice {
 public:
  void hold(Moment duration) override { held.push_back(duration); }
  Moment work_before(Mark /*mark*/, int layer) const override {
    return layer < 0 ? 200'000 : 10'000;
  }
  std::vector<Moment> held;
};

using Held = std::vector<Moment>;

TEST_CASE("Delays of forward and backward are the device's, all others the host's") {
  NotedDevice device;
  Slowness slowness({parse_straggler("rank=1,delay=3ms,phase=backward"),
                     parse_straggler("rank=1,delay=2ms,phase=forward"),
                     parse_straggler("rank=1,delay=1ms,phase=step"),
                     parse_straggler("rank=0,delay=9ms,phase=forward")},
                    1, 0);
  slowness.slow(device);
  SlowRecorder recorder(slowness, nullptr);
  for (int step = 0; step < 2; ++step) {
    device.held.clear();
    slowness.next_step();
    slowness.delay(StepPart::step);
    slowness.delay(StepPart::input);
    CHECK(device.held.empty());
    recorder.mark(Mark::forward_begin, -1);
    CHECK(device.held == Held{2'000'000});
    recorder.mark(Mark::forward_end, 0);
    recorder.mark(Mark::backward_begin, -1);
    CHECK(device.held == Held{2'000'000, 3'000'000});
    recorder.mark(Mark::backward_begin, 0);
    recorder.mark(Mark::backward_end, -1);
    recorder.mark(Mark::optimizer_begin, -1);
    recorder.mark(Mark::optimizer_end, -1);
    CHECK(device.held == Held{2'000'000, 3'000'000});
  }
}

TEST_CASE("A factor holds the device for its share of the work, short shares together") {
  NotedDevice device;
  Slowness slowness({parse_straggler("rank=0,factor=1.5")}, 0, 0);
  slowness.slow(device);
  slowness.next_step();
  SlowRecorder recorder(slowness, nullptr);
  recorder.mark(Mark::forward_begin, -1);
  // 5 us a layer; the fourth makes 20.
  for (int layer = 0; layer < 3; ++layer) recorder.mark(Mark::forward_end, layer);
  CHECK(device.held.empty());
  recorder.mark(Mark::forward_end, 3);
  CHECK(device.held == Held{20'000});
  recorder.mark(Mark::forward_end, 4);
  recorder.mark(Mark::backward_begin, -1);  // 5 us are left, and half of 200 us
  CHECK(device.held == Held{20'000, 105'000});
  recorder.mark(Mark::backward_end, -1);
  recorder.mark(Mark::optimizer_begin, -1);  // what comes between is no work
  CHECK(device.held == Held{20'000, 105'000, 100'000});
  recorder.mark(Mark::optimizer_end, -1);
  CHECK(device.held == Held{20'000, 105'000, 100'000, 100'000});
}

}  // namespace
}  // namespace lockstep::runner
