#include "runner/measure/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <thread>
#include <utility>

#include "runner/communicators/gloo.h"
#include "runner/measure/balance.h"
#include "runner/measure/gather.h"
#include "runner/measure/origin.h"
#include "runner/measure/pace.h"
#include "runner/measure/server_process.h"
#include "runner/measure/statistics.h"
#include "runner/measure/straggler.h"
#include "runner/measure/visit.h"
#include "runner/measure/watch.h"
#include "runner/measure/watched.h"

namespace lockstep::runner {

namespace {

constexpr int kFewestServed = 2;  ///< workers that share a server

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

/// The kernel draws a number when it starts: who has the same one runs on the same machine.
std::int64_t machine_number() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return static_cast<std::int64_t>(std::hash<std::string>()(id));
}

bool on_one_machine(Communicator& communicator, c10::Device device) {
  const auto numbers = gather(&communicator, {machine_number()}, device);
  return std::ranges::all_of(numbers, [&](const auto& row) { return row == numbers.front(); });
}

}  // namespace

Worker::Worker(const MeasureOptions& given, const WorkerEnvironment& where)
    : options(given),
      environment(without_servers(where, servers_beside(given), kFewestServed)),
      all_cores(usable_cores()),
      progress(progress_fd(), where.rank == 0) {
  keep_memory();
  if (options.threads == 0) {
    options.threads =
        std::max(1, static_cast<int>(all_cores.size()) / std::max(1, environment.local_size));
  }
  check_stragglers(options.stragglers, size());
  check_split(options, size());
  if (!options.calibration.empty()) calibration = read_calibration(options.calibration);
  cores = cores_of(environment, all_cores, options.threads);
  if (!replays()) bind_to_cores(cores);  // who waits needs no core of its own
  device = make_cpu_device(options.threads);
  if (size() > 1) {
    store = meet(where);
    communicator = make_gloo(environment, size(), store);
    if (where.world_size > size()) servers = make_point_to_point(where, store);
    emulated_ = hosts() > 1 && on_one_machine(*communicator, device->torch());
  }
  reference = std::make_unique<ReferenceKernel>(*device);
  part.measurement.id = options.visit;
  part.measurement.origin = make_origin(options.command, static_cast<int>(all_cores.size()));
}

void Worker::barrier() {
  if (communicator) communicator->barrier();
}

Moment Worker::spin() const {
  // Workers of other hosts count: they may be emulated on this machine.
  const int processes = size() + servers_beside(options);
  return spin_time(processes, static_cast<int>(std::thread::hardware_concurrency()));
}

bool Worker::own_core() const {
  return size() <= static_cast<int>(std::thread::hardware_concurrency());
}

Speed Worker::speed() {
  barrier();
  progress.beat();
  if (replays()) {
    const Moment same = calibration->reference.ns();
    speeds.push_back(same);
    return {.own = same, .all = same};
  }
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

void Worker::save(const std::string& piece) {
  if (!speeds.empty()) part.measurement.reference = Time::nanoseconds(median_ns(speeds));
  save_part(part, options.out, options.repeat, piece, rank());
  forget();
}

void Worker::forget() {
  const Measurement done = std::exchange(part.measurement, {});
  part.measurement.id = done.id;
  part.measurement.origin = done.origin;
  part.measurement.reference = done.reference;
  part.runs.clear();
  speeds.clear();
}

void run_worker(const MeasureOptions& options, const WorkerEnvironment& environment,
                const std::function<void(const std::string&)>& give_up) {
  const int servers = servers_beside(options);
  if (is_server(environment, servers)) {
    const int workers = without_servers(environment, servers, kFewestServed).local_size;
    const int cores = static_cast<int>(usable_cores().size());
    const int threads = options.threads > 0 ? options.threads : std::max(1, cores / workers);
    return run_server(environment, threads, options.silence_seconds, give_up);
  }
  Worker worker(options, environment);
  std::optional<Watch> watch;
  if (give_up && worker.size() > 1) {
    watch.emplace(environment, std::chrono::seconds(options.silence_seconds), give_up);
    worker.barrier();  // all are watched from here on
  }
  const auto dismiss = [&worker] {
    if (worker.first()) dismiss_servers(worker.servers.get(), worker.size());
  };
  watched(watch, [&] {
    try {
      measure_all(worker);
    } catch (const InputError&) {
      dismiss();  // no worker goes on
      throw;
    }
    dismiss();
  });
}

}  // namespace lockstep::runner
