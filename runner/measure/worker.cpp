#include "runner/measure/worker.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <thread>
#include <utility>

#include "runner/communicators/gloo.h"
#include "runner/communicators/lost_peers.h"
#include "runner/measure/balance.h"
#include "runner/measure/gather.h"
#include "runner/measure/origin.h"
#include "runner/measure/pace.h"
#include "runner/measure/statistics.h"
#include "runner/measure/straggler.h"
#include "runner/measure/visit.h"
#include "runner/measure/watch.h"
#include "runner/strategies/server.h"

namespace lockstep::runner {

namespace {

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

/// Of the workers: the last `servers` processes are none.
WorkerEnvironment without_servers(WorkerEnvironment environment, int servers) {
  if (servers == 0) return environment;
  const int workers = environment.world_size - servers;
  if (workers < 2) {
    throw InputError({}, "--servers",
                     fmt::format("{} of {} processes leave {} to work", servers,
                                 environment.world_size, std::max(0, workers)),
                     "start two more than servers, or more");
  }
  const bool one_host = environment.local_size == environment.world_size;
  if (!one_host && environment.local_size > 1) {
    throw InputError({}, "--servers", "several processes on each of several hosts",
                     "over several hosts one a host: the last ones are the servers'");
  }
  environment.world_size = workers;
  if (one_host) environment.local_size = workers;
  return environment;
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

/// glibc would give activations back to the system after every layer and fault them in again, which
/// costs a tenth of a step and varies.
void keep_memory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
}

}  // namespace

Worker::Worker(const MeasureOptions& given, const WorkerEnvironment& where)
    : options(given),
      environment(without_servers(where, servers_beside(given))),
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

namespace {

using GiveUp = std::function<void(const std::string&)>;

/// Does `what`; tells the others, where nobody else does, why it fails.
template <class F>
void watched(std::optional<Watch>& watch, F what) {
  try {
    what();
  } catch (const LostPeers&) {
    if (watch) watch->find_out();
    throw;
  } catch (const InputError&) {
    throw;  // the others see it as well
  } catch (const std::exception& error) {
    if (watch) watch->fail(error.what());
    throw;
  }
}

void dismiss_servers(Worker& worker) {
  if (!worker.servers || !worker.first()) return;
  for (int server = worker.size(); server < worker.servers->size(); ++server) {
    order_server(*worker.servers, server, {.what = ServerOrder::What::leave});
  }
}

/// A server has no cores of its own: it works while workers wait for it.
void run_server(const MeasureOptions& options, const WorkerEnvironment& environment,
                const GiveUp& give_up) {
  keep_memory();
  const int workers = without_servers(environment, servers_beside(options)).local_size;
  const int cores = static_cast<int>(usable_cores().size());
  const auto device =
      make_cpu_device(options.threads > 0 ? options.threads : std::max(1, cores / workers));
  const std::shared_ptr<Store> store = meet(environment);
  const auto group = make_point_to_point(environment, store);
  std::optional<Watch> watch;
  if (give_up) {
    watch.emplace(environment, std::chrono::seconds(options.silence_seconds), give_up);
  }
  Progress progress(progress_fd(), /*talk=*/false);
  watched(watch, [&] {
    serve(*group, [&progress](bool busy) {
      if (busy) {
        progress.beat();
      } else {
        progress.idle();
      }
    });
  });
}

}  // namespace

void run_worker(const MeasureOptions& options, const WorkerEnvironment& environment,
                const GiveUp& give_up) {
  const int servers = servers_beside(options);
  if (servers > 0 && environment.rank >= environment.world_size - servers) {
    return run_server(options, environment, give_up);
  }
  Worker worker(options, environment);
  std::optional<Watch> watch;
  if (give_up && worker.size() > 1) {
    watch.emplace(environment, std::chrono::seconds(options.silence_seconds), give_up);
    worker.barrier();  // all are watched from here on
  }
  watched(watch, [&] {
    try {
      measure_all(worker);
    } catch (const InputError&) {
      dismiss_servers(worker);  // no worker goes on
      throw;
    }
    dismiss_servers(worker);
  });
}

}  // namespace lockstep::runner
