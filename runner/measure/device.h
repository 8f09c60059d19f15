#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace lockstep::runner {

/// Nanoseconds on the clock of a device, or of the host for a CPU worker. Only differences count.
using Moment = std::int64_t;

/// A recorded training step that is launched as a whole.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void replay() = 0;
};

/// What differs between a worker that trains on a GPU and one that trains on cores.
class Device {
 public:
  virtual ~Device() = default;

  virtual c10::Device torch() const = 0;
  virtual std::string name() const = 0;

  /// The host waits until everything issued so far has been done.
  virtual void synchronize() = 0;

  /// Notes the place that the work issued so far has in the compute stream (a CPU: now), to be
  /// asked for later. Returns a number that counts from 0 after clear_stamps().
  virtual std::size_t stamp() = 0;
  /// When that place was reached; waits for it.
  virtual Moment moment(std::size_t stamp) = 0;
  virtual void clear_stamps() = 0;

  /// Records what `step` issues. RunError where the device has no graphs.
  virtual std::unique_ptr<Graph> capture(const std::function<void()>& step) = 0;

  /// Largest memory in use since the last call, in bytes; 0 where it is not known.
  virtual std::int64_t take_peak_bytes() = 0;
};

/// `threads` compute threads on the calling thread's cores. Host memory, host time.
std::unique_ptr<Device> make_cpu_device(int threads);

}  // namespace lockstep::runner
