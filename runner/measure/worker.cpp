#include "runner/measure/worker.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>

#include "runner/communicators/gloo.h"
#include "runner/measure/gather.h"
#include "runner/measure/origin.h"
#include "runner/measure/statistics.h"
#include "runner/measure/visit.h"

namespace lockstep::runner {

namespace {

int progress_fd() {
  const char* fd = std::getenv("LOCKSTEP_PROGRESS_FD");
  return fd != nullptr ? std::atoi(fd) : -1;
}

/// `threads` cores of this host for the worker; workers share cores only where there are too few.
std::vector<int> cores_of(const WorkerEnvironment& environment, const std::vector<int>& all,
                          int threads) {
  std::vector<int> cores;
  const auto first = std::size_t(environment.local_rank) * std::size_t(threads);
  for (std::size_t i = 0; i < std::size_t(threads); ++i) {
    cores.push_back(all[(first + i) % all.size()]);
  }
  return cores;
}

/// glibc would give activations back to the system after every layer and fault them in again, which
/// costs a tenth of a step and varies.
void keep_memory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
}

}  // namespace

Worker::Worker(const MeasureOptions& given, const WorkerEnvironment& where)
    : options(given),
      environment(where),
      all_cores(usable_cores()),
      progress(progress_fd(), where.rank == 0) {
  keep_memory();
  if (options.threads == 0) {
    options.threads =
        std::max(1, static_cast<int>(all_cores.size()) / std::max(1, environment.local_size));
  }
  cores = cores_of(environment, all_cores, options.threads);
  bind_to_cores(cores);
  device = make_cpu_device(options.threads);
  if (size() > 1) {
    store = meet(environment);
    communicator = make_gloo(environment, size(), store);
  }
  reference = std::make_unique<ReferenceKernel>(*device);
  part.measurement.id = options.visit;
  part.measurement.origin = make_origin(options.command, static_cast<int>(all_cores.size()));
}

void Worker::barrier() {
  if (communicator) communicator->barrier();
}

Speed Worker::speed() {
  barrier();
  progress.beat();
  const Moment own = reference->measure();
  speeds.push_back(own);
  Speed speed{.own = own, .all = 0};
  for (const auto& row : gather(communicator.get(), {own}, device->torch())) {
    speed.all += row.front() / size();
  }
  return speed;
}

std::int64_t Worker::agree(std::int64_t mine) {
  return runner::agree(communicator.get(), mine, device->torch());
}

void Worker::save() {
  if (speeds.empty()) return;
  part.measurement.reference = Time::nanoseconds(median_ns(speeds));
  save_part(part, options.out, options.repeat, rank());
}

void run_worker(const MeasureOptions& options, const WorkerEnvironment& environment) {
  Worker worker(options, environment);
  measure_all(worker);
}

}  // namespace lockstep::runner
