#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::runner {

/// What a launcher says about the process that it started.
struct WorkerEnvironment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_size = 1;
  std::string master_address;  ///< where rank 0 listens
  int master_port = 0;
  int listen_fd = -1;  ///< rank 0: a socket that already listens there; -1: it opens one
};

using Getenv = std::function<const char*(const char* name)>;

/// From torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
/// MASTER_PORT); without RANK, rank and size from Open MPI's (OMPI_COMM_WORLD_*) or Slurm's
/// (SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID). Nothing where no launcher speaks, and where it
/// speaks of one worker alone, as in an interactive shell of srun: such a process may start workers
/// itself; unless `launched`, which says that it was started as a worker by our own launcher.
/// InputError for variables that contradict each other or are no numbers.
std::optional<WorkerEnvironment> worker_environment(const Getenv& getenv, bool launched = false);

/// A small key-value store that all workers reach; what they exchange to find each other.
class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits until somebody has set it; RunError after `timeout`.
  virtual std::string get(const std::string& key, std::chrono::milliseconds timeout) = 0;
};

/// A listening socket on that address only; port 0 takes a free one and tells which. RunError with
/// the reason where that cannot be.
int listen_on(const std::string& address, int& port);

/// torchrun says that it serves the store itself (TORCHELASTIC_USE_AGENT_STORE).
bool torchrun_serves_store();

/// LibTorch's TCPStore, served by rank 0 or by torchrun. Waits for everyone.
std::shared_ptr<Store> meet(const WorkerEnvironment& environment,
                            std::chrono::milliseconds timeout = std::chrono::seconds(60));

}  // namespace lockstep::runner
