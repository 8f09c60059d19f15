#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runner/communicators/communicator.h"
#include "runner/communicators/point_to_point.h"
#include "runner/communicators/rendezvous.h"
#include "runner/measure/device.h"
#include "runner/measure/options.h"
#include "runner/measure/progress.h"
#include "runner/measure/reference.h"
#include "runner/measure/results.h"
#include "sim/records/calibration.h"

namespace lockstep::runner {

/// Time of the reference kernel, run by all workers at once.
struct Speed {
  Moment own = 0;
  Moment all = 0;  ///< mean over the workers (their slowest would be their luckless one)
};

/// One process of a measurement, and what it has at hand.
class Worker {
 public:
  Worker(const MeasureOptions& options, const WorkerEnvironment& environment);

  int rank() const { return environment.rank; }
  int size() const { return environment.world_size; }
  bool first() const { return environment.rank == 0; }
  int hosts() const { return size() / environment.local_size; }
  bool replays() const { return options.compute == Compute::replay; }
  bool emulated() const { return emulated_; }  ///< several hosts that are one machine
  Moment spin() const;                         ///< of waits, see wait_until
  bool own_core() const;                       ///< workers are no more than cores
  void barrier();
  /// In a replay, where nothing is computed, always that of the calibration.
  Speed speed();
  /// Rank 0's decision.
  std::int64_t agree(std::int64_t mine);
  /// What was measured since the last call, as that piece.
  void save(const std::string& piece);
  /// The same, without keeping it.
  void forget();

  MeasureOptions options;
  WorkerEnvironment environment;  ///< of the workers alone
  std::vector<int> cores;         ///< of this worker
  std::vector<int> all_cores;
  std::unique_ptr<Device> device;
  std::shared_ptr<Store> store;                ///< null alone
  std::unique_ptr<Communicator> communicator;  ///< null alone
  std::unique_ptr<PointToPoint> servers;       ///< and workers before them; null without servers
  std::unique_ptr<ReferenceKernel> reference;
  std::optional<Calibration> calibration;  ///< that the runs belong to
  Progress progress;
  Part part;
  std::vector<Moment> speeds;  ///< measured since the last save

 private:
  bool emulated_ = false;
};

/// Joins the others, measures what the options say, saves its part; or serves those that do, as one
/// of the last ranks where a strategy has servers. Throws RunError where a peer is
/// lost or parity does not hold. Without a launcher of ours, `give_up` ends the process where
/// another worker is gone; see Watch.
void run_worker(const MeasureOptions& options, const WorkerEnvironment& environment,
                const std::function<void(const std::string&)>& give_up = {});

}  // namespace lockstep::runner
