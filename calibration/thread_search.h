#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/records/calibration.h"
#include "sim/records/result.h"
#include "sim/records/run.h"
#include "sim/scenario/scenario.h"

// How many processes with how many threads train fastest on the cores of one host, and at which
// batch: what the CPU studies of Horovod ask.
namespace lockstep {

struct ThreadPoint {
  int processes = 1, threads = 1;  ///< of one host; threads are each process's
  int total_batch = 1;
  ResultPoint predicted;
  /// Of a run in the same visit as the calibration: at the calibration's speed.
  std::optional<Time> measured;
  double error = 0;          ///< predicted over measured, less one
  double repeat_spread = 0;  ///< of the run: (max - min) / median over repeats
  bool stable = true;
  /// Samples a second, of what was measured.
  double measured_throughput() const { return total_batch / measured.value().seconds(); }
};

/// Every number of processes that the cores hold with the threads of each calibration (which were
/// measured on one machine, each with another number of threads), at every total batch that has a
/// sample for each; the fastest first. The scenario gives model, strategy and options. Throws
/// InputError where calibrations are of GPUs, of several machines, or of the same threads twice.
std::vector<ThreadPoint> search_threads(const Scenario& scenario,
                                        std::span<const Calibration> calibrations,
                                        std::span<const int> total_batches);

/// Puts runs beside the points that they are of: the same calibration, processes and batch, of the
/// scenario's model and strategy, or `single` for one process. Others are left out. Returns how
/// many points have one.
int add_measured(std::vector<ThreadPoint>& points, const Scenario& scenario,
                 std::span<const Calibration> calibrations, const std::vector<Run>& runs);

std::string to_table(const std::vector<ThreadPoint>& points);
void write_thread_search(const std::vector<ThreadPoint>& points, const Scenario& scenario,
                         const std::string& file);

}  // namespace lockstep
