#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "runner/communicators/rendezvous.h"

namespace lockstep::runner {

/// Watches over the workers from within one of them, where no launcher of ours does: each raises a
/// number in the store every second, and whose number stands still is dead, stopped or cut off.
/// All find the same one, so that every rank names the one that it was.
class Watch {
 public:
  /// Called from another thread, once, with what to say of the others; it ends the process, since a
  /// thread that waits for a lost worker cannot be reached.
  using GiveUp = std::function<void(const std::string& why)>;

  /// `patience`: how long after a worker falls silent all others have ended.
  Watch(const WorkerEnvironment& environment, std::chrono::seconds patience, GiveUp give_up);
  ~Watch();  ///< tells the others that this worker is done
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// For a worker that has lost others: shortens the patience, and returns only if it turns out
  /// that all are alive.
  void find_out();
  /// Tells the others that this worker fails by itself, and gives them the time to hear it.
  void fail(const std::string& why);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::runner
