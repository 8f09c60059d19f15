#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "runner/communicators/shared_memory.h"

namespace lockstep::runner {

/// Copies between a worker's device and memory of its host, in the order of the calls and beside
/// compute. Tensors are contiguous and of one size and type.
class HostCopies {
 public:
  virtual ~HostCopies() = default;
  /// Until unpin(), the device copies from and to this array of the host by itself.
  virtual void pin(const at::Tensor& host) = 0;
  virtual void unpin(const at::Tensor& host) = 0;
  /// To the host, once what compute holds so far is done; then `there` counts one more.
  virtual void out(const at::Tensor& host, const at::Tensor& device, Counter& there) = 0;
  /// From the host, at once; compute that is issued from here on comes after it.
  virtual void in(const at::Tensor& device, const at::Tensor& host) = 0;
  /// Compute that is issued from here on comes after all copies so far.
  virtual void join() = 0;
  /// The host waits for all copies so far.
  virtual void finish() = 0;
};

/// Of a worker on cores: the copies are its own work.
std::unique_ptr<HostCopies> make_cpu_copies();

}  // namespace lockstep::runner
