#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <semaphore>
#include <thread>
#include <vector>

#include "runner/strategies/replica_devices.h"

namespace lockstep::runner {

/// A thread for each device but the first, which the calling thread drives itself. nn.DataParallel
/// starts its threads anew in every forward; here they stay, since cuDNN remembers by thread which
/// algorithms it has found. No lock is held while they work: they issue side by side, where
/// Python's threads take turns.
class ReplicaThreads {
 public:
  /// `devices` outlives this.
  explicit ReplicaThreads(ReplicaDevices& devices);
  ~ReplicaThreads();
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  /// Calls work(device) for all devices at once and waits for all. Autocast, which is a thread's
  /// own, is everywhere what it is in the calling thread. Of failures the one of the lowest device
  /// is thrown on.
  void run(const std::function<void(int)>& work);

 private:
  struct Seat {
    std::binary_semaphore begin{0}, done{0};
    std::exception_ptr failure;
  };
  /// What autocast does on these devices.
  struct Casts {
    bool on = false;
    at::ScalarType to = at::ScalarType::Undefined;
  };
  Casts casts() const;
  void take_over(const Casts& casts) const;
  void serve(int device, Seat& seat);

  ReplicaDevices& devices_;
  std::deque<Seat> seats_;  ///< of devices 1, 2, ...
  const std::function<void(int)>* work_ = nullptr;
  Casts casts_;
  bool over_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace lockstep::runner
