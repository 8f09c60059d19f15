#include "runner/measure/machine.h"

#include <ATen/Parallel.h>

#include "runner/measure/collectives.h"
#include "runner/measure/copies.h"
#include "runner/measure/interference.h"
#include "runner/measure/origin.h"
#include "runner/measure/statistics.h"

namespace lockstep::runner {

namespace {

constexpr int kCollectiveRounds = 7;

std::vector<Bytes> sizes() {
  std::vector<Bytes> result;
  for (std::int64_t kib = 4; kib <= 64 * 1024; kib *= 4) result.push_back({kib * 1024});
  return result;
}

void measure_collectives(Worker& worker) {
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::broadcast}) {
    const Speed before = worker.speed();
    CollectiveTable table =
        measure_collective(kind, *worker.communicator, *worker.device, sizes(), kCollectiveRounds);
    const Speed after = worker.speed();
    if (!worker.first()) continue;
    table.environment = worker.part.measurement.origin.environment;
    worker.part.measurement.collectives.push_back(
        {.process = worker.options.repeat,
         .speed_index = {.before = Time::nanoseconds(before.own),
                         .after = Time::nanoseconds(after.own)},
         .table = std::move(table)});
  }
}

/// The reference kernel by `active` workers at once, `threads` threads each, on all cores.
CoreSample time_cores(Worker& worker, int active, int threads) {
  const Speed before = worker.speed();
  worker.barrier();
  CoreSample sample{.active = active, .threads = threads, .speed_index = {}, .time = {}};
  if (worker.rank() < active) {
    bind_to_cores(threads == worker.options.threads ? worker.cores : worker.all_cores);
    at::set_num_threads(threads);
    worker.reference->run();
    sample.time = Time::nanoseconds(worker.reference->measure());
    at::set_num_threads(worker.options.threads);
    bind_to_cores(worker.cores);
  }
  const Speed after = worker.speed();
  sample.speed_index = {.before = Time::nanoseconds(before.own),
                        .after = Time::nanoseconds(after.own)};
  return sample;
}

void measure_cores(Worker& worker) {
  const int cores = static_cast<int>(worker.all_cores.size());
  for (int active = 1; active <= worker.environment.local_size; active *= 2) {
    for (int threads = 1; threads <= cores; threads *= 2) {
      const CoreSample sample = time_cores(worker, active, threads);
      if (worker.rank() < active) worker.part.measurement.cores.push_back(sample);
    }
  }
}

}  // namespace

void measure_machine(Worker& worker) {
  if (worker.communicator) {
    worker.progress.say("", "collectives");
    measure_collectives(worker);
    worker.progress.say("", "compute beside collectives");
    for (InterferenceSample& sample : measure_interference(*worker.communicator, *worker.device)) {
      worker.part.measurement.interference.push_back(std::move(sample));
    }
    worker.progress.say("", "copies into buckets");
    worker.barrier();
    CopyTable copies = measure_bucket_copies(*worker.device);
    if (worker.first()) worker.part.measurement.copies.push_back(std::move(copies));
  }
  worker.progress.say("", "cores");
  measure_cores(worker);
}

}  // namespace lockstep::runner
