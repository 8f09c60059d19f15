#pragma once

#include <string_view>
#include <vector>

#include "sim/workload/worker_program.h"
#include "sim/workload/workload.h"

namespace lockstep {

/// How workers combine their gradients. A new one is a file with its `write`, and a line in
/// strategy.cpp.
struct Strategy {
  std::string_view name;
  bool has_buckets = false;  ///< takes the bucket options
  bool has_root = false;     ///< rank 0 does more than the others
  /// One process drives all devices: its first thread issues what they exchange.
  bool one_process = false;
  /// Writes one iteration of one worker, between begin_step and end_step.
  void (*write)(WorkerProgram& worker, const Workload& workload, Phase phase) = nullptr;
};

void write_single(WorkerProgram& worker, const Workload& workload, Phase phase);
void write_gather_scatter(WorkerProgram& worker, const Workload& workload, Phase phase);
void write_all_reduce(WorkerProgram& worker, const Workload& workload, Phase phase);
void write_ddp(WorkerProgram& worker, const Workload& workload, Phase phase);
void write_heterogeneous(WorkerProgram& worker, const Workload& workload, Phase phase);
void write_data_parallel(WorkerProgram& worker, const Workload& workload, Phase phase);

std::vector<std::string_view> strategy_names();
/// Throws InputError that lists the names where there is none of this one.
const Strategy& strategy_named(std::string_view name);

/// One iteration of all workers.
TaskGraph compile(const Workload& workload, Phase phase);

}  // namespace lockstep
