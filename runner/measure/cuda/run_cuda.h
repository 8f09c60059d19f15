#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/measure/cuda/step_timing.h"
#include "runner/measure/precision.h"
#include "runner/strategies/replica_devices.h"
#include "sim/records/run.h"

namespace lockstep::runner {

/// What is trained, how, and for how long.
struct RunOptionsCuda {
  std::string model;
  int batch = 0;  ///< per worker
  Precision precision = Precision::fp32;
  StrategyOptions strategy;
  ReplicaDevices* devices = nullptr;  ///< of data_parallel, in whose runs they are the workers
  Time budget;                        ///< of each timed block
  int process = 0;
  std::uint64_t seed = 1;
  std::vector<Sync> syncs{Sync::step, Sync::none};
  bool eager = true, graph = true;
  std::vector<InjectedStraggler> stragglers;  ///< of these workers; where there are any, no graph
  std::uint64_t draws = 1;                    ///< seed of what varies of them
};

/// What every run of these options says before it has steps: synchronised, eager.
Run blank_run_cuda(const GpuWorker& worker, const RunOptionsCuda& options);

/// About how many steps measure_runs_cuda trains where one takes `step`.
int steps_of_runs_cuda(Time step, Time block);

/// Trains one configuration eagerly and as a graph, synchronised and free-running: one Run each,
/// with one repeat and this worker's rank. Where memory does not suffice for a graph on some
/// worker, its run says so, without steps, on all of them. Every worker calls it. Origin, id and
/// calibration are left to the caller. Data_parallel is run by one worker alone, and eagerly:
/// `graph` must be off.
std::vector<Run> measure_runs_cuda(const GpuWorker& worker, const RunOptionsCuda& options);

}  // namespace lockstep::runner
