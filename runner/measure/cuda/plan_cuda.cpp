#include "runner/measure/cuda/plan_cuda.h"

#include <algorithm>

#include "runner/data/loader.h"
#include "runner/measure/clock.h"
#include "runner/measure/cuda/profile_cuda.h"
#include "runner/measure/cuda/run_cuda.h"
#include "runner/measure/out_of_memory.h"
#include "runner/measure/train.h"
#include "runner/models/zoo.h"
#include "runner/strategies/strategy.h"

namespace lockstep::runner {

std::optional<QuickPassCuda> time_quickly_cuda(const GpuWorker& worker, const std::string& name,
                                               int batch, Precision precision, std::uint64_t seed) {
  constexpr int kSteps = 5;
  QuickPassCuda quick;
  const bool fits = fits_in_memory([&] {
    const Moment begin = host_now();
    Model model = make_model(name, worker.device.torch(), seed);
    const auto strategy = make_single(model);
    Trainer trainer(model, *strategy, {}, nullptr, precision);
    const Batch samples = random_batch(model, batch, seed, worker.device.torch());
    worker.device.synchronize();
    const Moment made = host_now();
    const GpuWorker alone{.device = worker.device, .communicator = nullptr, .beat = worker.beat};
    quick.step =
        warm_up(alone, kSteps, [&](Recorder* recorder) { trainer.step(samples, recorder); });
    const Moment warm = host_now();
    const int steps = within_patience(quick.step, kSteps, 3);
    quick.make = Time::nanoseconds(made - begin);
    quick.search = std::max(Time{}, Time::nanoseconds(warm - made) - quick.step * steps);
  });
  worker.device.release_memory();
  if (!fits) return std::nullopt;
  return quick;
}

Time estimate_cuda(const QuickPassCuda& quick, Time block, int strategies) {
  const int steps = ProfileCuda::steps_of(quick.step, block, strategies) +
                    strategies * steps_of_runs_cuda(quick.step, block);
  return quick.make * (1 + strategies) + quick.search + quick.step * steps;
}

}  // namespace lockstep::runner
