#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "runner/communicators/rendezvous.h"

namespace lockstep::runner {

/// Memory that is sent from or received into, one message at a time: always all of it. A lost peer
/// ends in LostPeers.
class Mailbox {
 public:
  virtual ~Mailbox() = default;
  /// Begins; wait_sent() returns when the memory may change.
  virtual void send(int to) = 0;
  virtual void wait_sent() = 0;
  /// Begins; wait_received() returns true when the message is there, false after abort(). However
  /// long it takes: who watches over the processes ends it where a peer hangs.
  virtual void receive(int from) = 0;
  virtual bool wait_received() = 0;
  /// From another thread.
  virtual void abort() = 0;
};

/// Processes that send each other messages.
class PointToPoint {
 public:
  virtual ~PointToPoint() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// `memory` outlives it. Messages of one tag between two ranks arrive in the order in which they
  /// were sent; both ends agree on their size.
  virtual std::unique_ptr<Mailbox> mailbox(void* memory, std::size_t bytes, std::uint64_t tag) = 0;
};

/// Gloo's point-to-point over TCP among all processes of `environment`. RunError where they cannot
/// connect.
std::unique_ptr<PointToPoint> make_point_to_point(
    const WorkerEnvironment& environment, const std::shared_ptr<Store>& store,
    std::chrono::milliseconds timeout = std::chrono::seconds(30));

}  // namespace lockstep::runner
