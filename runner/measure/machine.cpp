#include "runner/measure/machine.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runner/measure/clocks.h"
#include "runner/measure/collectives.h"
#include "runner/measure/copies.h"
#include "runner/measure/interference.h"
#include "runner/measure/origin.h"
#include "runner/measure/server_tables.h"

namespace lockstep::runner {

namespace {

CollectiveSizes sizes() {
  CollectiveSizes result;
  for (std::int64_t bytes = 256; bytes <= 64 * kMiB.count; bytes *= 4) {
    result.bytes.push_back({bytes});
  }
  return result;
}

bool wants_gather(const MeasureOptions& options) {
  return options.only_collectives ||
         std::ranges::find(options.strategies, "gather_scatter") != options.strategies.end();
}

std::string topology(const Worker& worker) {
  return worker.hosts() == 1 ? kOneHost : fmt::format("{} hosts", worker.hosts());
}

void measure_messages(Worker& worker) {
  worker.progress.say("", "messages");
  const Speed before = worker.speed();
  CollectiveTable table;
  if (worker.first()) {
    table =
        time_message_table(*worker.servers, worker.size(), [&worker] { worker.progress.beat(); });
    table.environment = worker.part.measurement.origin.environment;
  }
  const Speed after = worker.speed();
  if (!worker.first()) return;
  worker.part.measurement.collectives.push_back(
      {.process = worker.options.repeat,
       .speed_index = {.before = Time::nanoseconds(before.own),
                       .after = Time::nanoseconds(after.own)},
       .table = std::move(table)});
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

void measure_copies(Worker& worker) {
  worker.progress.say("", "copies into buckets");
  worker.barrier();
  std::vector<CopyTable> tables{measure_bucket_copies(*worker.device)};
  if (wants_gather(worker.options) || worker.servers)
    tables.push_back(measure_adding(*worker.device));
  if (!worker.first()) return;
  for (CopyTable& table : tables) worker.part.measurement.copies.push_back(std::move(table));
}

}  // namespace

void measure_collectives(Worker& worker) {
  worker.progress.say("", "collectives");
  std::vector<CollectiveKind> kinds{CollectiveKind::all_reduce, CollectiveKind::broadcast};
  if (wants_gather(worker.options)) {
    kinds.insert(kinds.end(), {CollectiveKind::gather, CollectiveKind::scatter});
  }
  std::vector<Moment> offsets(static_cast<std::size_t>(worker.size()), 0);
  if (worker.hosts() > 1) offsets = clock_offsets(*worker.communicator, *worker.device);
  for (const CollectiveKind kind : kinds) {
    const Speed before = worker.speed();
    CollectiveTable table =
        measure_collective(kind, *worker.communicator, *worker.device, sizes(), offsets);
    const Speed after = worker.speed();
    if (!worker.first()) continue;
    table.topology = topology(worker);
    table.environment = worker.part.measurement.origin.environment;
    CollectiveSample sample{
        .process = worker.options.repeat, .speed_index = {}, .table = std::move(table)};
    if (worker.hosts() == 1) {
      sample.speed_index = {.before = Time::nanoseconds(before.own),
                            .after = Time::nanoseconds(after.own)};
    }
    worker.part.measurement.collectives.push_back(std::move(sample));
  }
}

void measure_machine(Worker& worker) {
  if (worker.communicator) {
    measure_collectives(worker);
    if (worker.servers && worker.hosts() == 1) measure_messages(worker);
    worker.progress.say("", "compute beside collectives");
    for (InterferenceSample& sample : measure_interference(*worker.communicator, *worker.device)) {
      worker.part.measurement.interference.push_back(std::move(sample));
    }
    measure_copies(worker);
  }
  worker.progress.say("", "cores");
  measure_cores(worker);
}

}  // namespace lockstep::runner
