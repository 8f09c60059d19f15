#pragma once

#include <string>
#include <vector>

#include "runner/communicators/rendezvous.h"

namespace lockstep::runner {

/// What one start of all workers is to be.
struct Launch {
  std::vector<std::string> arguments;  ///< of every worker, without the program's name
  int workers = 1;
  int silence_seconds = 25;
  bool busy_is_alive = true;  ///< false where workers spin while they wait (GPUs)
};

/// How it ended.
struct LaunchResult {
  bool interrupted = false;  ///< Ctrl-C or a termination request
  int rank = -1;             ///< of the worker that failed; -1: none did
  int exit_code = 0;         ///< its own, if it ended by itself
  std::string says;          ///< the worker itself, where it could
  std::string what;          ///< "was killed by signal 9 (Killed)", "has not moved for 30 s"
  std::string run;           ///< id of the run that it was at; may be empty
};

/// Starts this program once per worker on this host, with torchrun's variables set, rank 0 on a
/// socket that listens on loopback only; shows their progress and waits. When one dies, is stopped,
/// or all are silent and idle for too long, the others are stopped, and the one that did it is
/// named, not those that lost it. None outlives this process.
LaunchResult launch_workers(const Launch& launch);

}  // namespace lockstep::runner
