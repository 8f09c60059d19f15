#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <memory>
#include <vector>

namespace lockstep::runner {

/// The devices that one process drives for data_parallel; the first holds the model. What they
/// exchange is issued by the calling thread and queued on each device behind what that thread's
/// device and stream there (see enter) hold so far.
class ReplicaDevices {
 public:
  virtual ~ReplicaDevices() = default;

  virtual int count() const = 0;
  virtual c10::Device torch(int device) const = 0;
  /// The calling thread works on this device, and in its stream, from here on.
  virtual void enter(int device) = 0;

  /// `from`, on device 0, into one tensor of its shape on each other device. All contiguous.
  virtual void broadcast(const at::Tensor& from, std::vector<at::Tensor>& to) = 0;
  /// The sum of one array on each device, on device 0. All contiguous, of one shape.
  virtual void reduce(const std::vector<at::Tensor>& parts, at::Tensor& sum) = 0;
  /// Shares of a batch on device 0 along dimension 0, each on its device, as torch.chunk cuts them:
  /// of one size but the last. RunError where there are fewer shares than devices.
  virtual std::vector<at::Tensor> scatter(const at::Tensor& whole) = 0;
  /// The opposite, on device 0.
  virtual at::Tensor gather(const std::vector<at::Tensor>& parts) = 0;
};

/// `count` (>= 1) devices that are all the host's cores and memory: what they exchange is copied
/// and added by the calling thread. There to check data_parallel where there is no GPU.
std::unique_ptr<ReplicaDevices> make_cpu_replicas(int count);

/// RunError unless there is one share for each of `devices`.
void require_shares(const std::vector<at::Tensor>& shares, int devices);

}  // namespace lockstep::runner
