#include "runner/measure/cuda/step_timing.h"

#include <ATen/ops/full.h>

#include <algorithm>

#include "runner/measure/clock.h"
#include "runner/measure/cuda/timing.h"
#include "runner/measure/gather.h"
#include "runner/measure/statistics.h"

namespace lockstep::runner {

void GpuWorker::synchronize() const {
  if (communicator) {
    communicator->synchronize(device.stream());
  } else {
    device.synchronize();
  }
}

void GpuWorker::barrier() const {
  if (communicator) communicator->barrier();
}

Time GpuWorker::agree(Time mine) const {
  if (!communicator) return mine;
  const at::Tensor sum =
      at::full({1}, mine.seconds(), at::TensorOptions(device.torch()).dtype(at::kDouble));
  communicator->all_reduce(sum);
  communicator->join();
  communicator->synchronize(device.stream());
  return Time::from_seconds(sum.item<double>() / size());
}

std::optional<int> GpuWorker::first_without_room(bool fitted) const {
  const auto rows = gather(communicator, {fitted ? 1 : 0}, device.torch());
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    if (rows[rank].front() == 0) return static_cast<int>(rank);
  }
  return std::nullopt;
}

namespace {

constexpr Time kPatience = Time::milliseconds(1500);
constexpr Time kSlow = Time::milliseconds(100);  ///< a step behind which a beat costs nothing

class Beating : public Recorder {
 public:
  explicit Beating(const std::function<void()>& beat) : beat_(beat) {}
  void mark(Mark, int) override { beat_(); }

 private:
  const std::function<void()>& beat_;
};

}  // namespace

int within_patience(Time one, int wanted, int fewest) {
  const auto fitting = kPatience.ps() / std::max<std::int64_t>(one.ps(), 1);
  return static_cast<int>(
      std::clamp<std::int64_t>(fitting, std::min(fewest, wanted), std::max(fewest, wanted)));
}

int steps_within(Time one, Time budget, int fewest, int most) {
  constexpr int kFewestOfAll = 3;
  const std::int64_t fitting = budget.ps() / std::max<std::int64_t>(one.ps(), 1);
  const std::int64_t least = within_patience(one, fewest, kFewestOfAll);
  return static_cast<int>(std::clamp<std::int64_t>(fitting, least, most));
}

Time warm_up(const GpuWorker& worker, int wanted, const std::function<void(Recorder*)>& step) {
  constexpr int kFewest = 3;
  Beating beating(worker.beat);
  step(&beating);
  worker.synchronize();
  step(nullptr);
  worker.synchronize();
  worker.beat();
  const Moment begin = host_now();
  step(nullptr);
  worker.synchronize();
  const Time one = worker.agree(Time::nanoseconds(host_now() - begin));
  const int steps = within_patience(one, wanted, kFewest);
  for (int i = kFewest; i < steps; ++i) {
    step(nullptr);
    if (one < kSlow) continue;
    worker.synchronize();
    worker.beat();
  }
  worker.synchronize();
  worker.beat();
  return one;
}

namespace {

std::vector<Time> time_synchronised(const GpuWorker& worker, int count,
                                    const std::function<void()>& step) {
  std::vector<Time> samples;
  worker.synchronize();
  std::int64_t before = host_now();
  for (int i = 0; i < count; ++i) {
    step();
    worker.synchronize();
    const std::int64_t now = host_now();
    samples.push_back(Time::nanoseconds(now - before));
    before = now;
    if (samples.back() > kSlow) worker.beat();
  }
  return samples;
}

std::vector<Time> time_free_running(const GpuWorker& worker, int count,
                                    const std::function<void()>& step) {
  std::vector<DeviceMark> marks(static_cast<std::size_t>(count) + 1);
  step();  // the first one starts on an idle device
  marks[0].record(worker.device.stream());
  for (std::size_t i = 1; i < marks.size(); ++i) {
    step();
    marks[i].record(worker.device.stream());
  }
  worker.synchronize();
  std::vector<Time> samples;
  for (std::size_t i = 1; i < marks.size(); ++i) samples.push_back(marks[i].since(marks[i - 1]));
  return samples;
}

}  // namespace

std::vector<Time> time_steps(const GpuWorker& worker, Sync sync, int count,
                             const std::function<void()>& step) {
  worker.beat();
  worker.barrier();
  return sync == Sync::step ? time_synchronised(worker, count, step)
                            : time_free_running(worker, count, step);
}

int steps_for(const GpuWorker& worker, Time budget, int fewest, int most,
              const std::function<void()>& step) {
  std::vector<Time> trial = time_steps(worker, Sync::step, kTrialSteps, step);
  return steps_within(worker.agree(median_time(trial)), budget, fewest, most);
}

}  // namespace lockstep::runner
