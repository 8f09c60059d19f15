#pragma once

#include <functional>
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
  bool has_cycles = false;   ///< takes the options of a background thread's cycles
  /// One process drives all devices: its first thread issues what they exchange.
  bool one_process = false;
  /// Workers exchange with servers, not with each other: what is written is what a worker computes
  /// (see server_system.h).
  bool has_servers = false;
  /// Writes one iteration of one worker, between begin_step and end_step.
  void (*write)(WorkerProgram& worker, const Workload& workload, Phase phase) = nullptr;
  /// Instead, where what one worker does depends on the others' times: the whole iteration.
  TaskGraph (*compile)(const Workload& workload, Phase phase) = nullptr;
};

/// Gradients of `bytes` on top of those of the passes before.
void write_addition(WorkerProgram& worker, const Workload& workload, const std::string& name,
                    Bytes bytes);
/// Those of a layer, as each gets ready: one launch a parameter.
void write_additions(WorkerProgram& worker, const Workload& workload, const Layer& layer);
/// Backward of a pass that reduces nothing: unless it is the step's `first`, each layer's gradients
/// are added to what is there.
void write_backward_alone(WorkerProgram& worker, const Workload& workload, bool first);

void write_single(WorkerProgram& worker, const Workload& workload, Phase phase);
void write_gather_scatter(WorkerProgram& worker, const Workload& workload, Phase phase);
void write_all_reduce(WorkerProgram& worker, const Workload& workload, Phase phase);
void write_ddp(WorkerProgram& worker, const Workload& workload, Phase phase);
void write_heterogeneous(WorkerProgram& worker, const Workload& workload, Phase phase);
void write_data_parallel(WorkerProgram& worker, const Workload& workload, Phase phase);
void write_parameter_server(WorkerProgram& worker, const Workload& workload, Phase phase);

TaskGraph compile_horovod(const Workload& workload, Phase phase);

std::vector<std::string_view> strategy_names();
/// Throws InputError that lists the names where there is none of this one.
const Strategy& strategy_named(std::string_view name);

/// One iteration of all workers, each written by `write` between begin_step and end_step.
TaskGraph compile_workers(
    const Workload& workload,
    const std::function<void(WorkerProgram& worker, std::uint32_t profile)>& write);

/// One iteration of all workers.
TaskGraph compile(const Workload& workload, Phase phase);

}  // namespace lockstep
