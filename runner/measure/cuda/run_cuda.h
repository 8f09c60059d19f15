#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/measure/cuda/step_timing.h"
#include "runner/strategies/replica_devices.h"
#include "sim/records/run.h"

namespace lockstep::runner {

/// What is trained, how, and for how long.
struct RunOptionsCuda {
  std::string model;
  int batch = 0;  ///< per worker
  StrategyOptions strategy;
  ReplicaDevices* devices = nullptr;  ///< of data_parallel, in whose runs they are the workers
  Time budget;                        ///< of each timed block
  int process = 0;
  std::uint64_t seed = 1;
  std::vector<Sync> syncs{Sync::step, Sync::none};
  bool eager = true, graph = true;
};

/// Trains one configuration eagerly and as a graph, synchronised and free-running: one Run each,
/// with one repeat and this worker's rank. Every worker calls it. Origin, id and calibration are
/// left to the caller. Data_parallel is run by one worker alone, and eagerly: `graph` must be off.
std::vector<Run> measure_runs_cuda(const GpuWorker& worker, const RunOptionsCuda& options);

}  // namespace lockstep::runner
