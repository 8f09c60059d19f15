#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "runner/communicators/communicator.h"

namespace lockstep::runner {

/// Where a thread beside the one that trains has gradients reduced: on cores it does that itself,
/// on a GPU it launches it on the communicator's stream. Gradients are known by number.
class FusionLane {
 public:
  virtual ~FusionLane() = default;

  /// For the ranks' hosts to agree over, in host memory.
  virtual Communicator& control() = 0;
  /// The thread that trains: what it has issued so far makes the gradient.
  virtual void note(int gradient) = 0;
  /// Waits until the gradients have been made.
  virtual void await(const std::vector<int>& gradients) = 0;
  /// When the gradient was made, in this step.
  virtual Moment made(int gradient) = 0;
  /// Runs `before`, the sum over all ranks, in place, and `after`, one behind the other on the
  /// lane.
  virtual void reduce(const at::Tensor& flat, const std::function<void()>& before,
                      const std::function<void()>& after) = 0;
  /// The thread that trains, when the other has come to its end: compute goes on behind the lane.
  virtual void join() = 0;
  /// Of reduce() since the last call, in order; empty where nobody keeps the time.
  virtual std::vector<Transfer> take_transfers() = 0;
};

/// On cores, over `communicator`, which outlives it.
std::unique_ptr<FusionLane> make_core_lane(Communicator& communicator, std::size_t gradients);

}  // namespace lockstep::runner
