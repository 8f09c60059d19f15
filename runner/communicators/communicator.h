#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runner/measure/device.h"
#include "sim/core/task_graph.h"
#include "sim/core/units.h"

namespace lockstep::runner {

/// One collective as this rank saw it.
struct Transfer {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes;        ///< of one rank's array
  Moment launch = 0;  ///< it began here: everything before it in this rank's queue had been done
  Moment done = 0;
};

class FusionLane;
class MixedCommunicator;

/// A group of workers that combine flat tensors. Operations are queued: they run in the order of
/// the calls, each after what the compute stream holds at its call, while compute goes on. Every
/// rank must make the same calls. A lost peer ends in a RunError that names it.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string backend() const = 0;  ///< "gloo", "nccl"

  /// Sum over all ranks, in place. `flat` is contiguous and stays alive and untouched until join().
  virtual void all_reduce(const at::Tensor& flat) = 0;
  /// Everyone gets the root's values, in place.
  virtual void broadcast(const at::Tensor& flat, int root) = 0;
  /// The root gets the arrays of all ranks, by rank one after another, in `all`; the other ranks
  /// give it an undefined tensor.
  virtual void gather(const at::Tensor& flat, const at::Tensor& all, int root) = 0;
  /// Every rank gets in `flat` what the root has for it: parts[rank]. Parts may be one and the same
  /// tensor; the other ranks have none.
  virtual void scatter(const std::vector<at::Tensor>& parts, const at::Tensor& flat, int root) = 0;
  /// What compute issues from here on comes after all queued operations. (The host of a CPU worker
  /// waits; that of a GPU worker does not.)
  virtual void join() = 0;
  /// Returns when every rank's host has called it.
  virtual void barrier() = 0;

  /// Operations queued since the last call, in order; waits for them.
  virtual std::vector<Transfer> take_transfers() = 0;

  /// For a thread beside the one that trains and a model with as many gradients; see there. The
  /// communicator outlives it. RunError where it has none.
  virtual std::unique_ptr<FusionLane> make_lane(std::size_t gradients);
  /// Of GPUs and a worker on cores; null where all devices are of one kind.
  virtual MixedCommunicator* mixed() { return nullptr; }
};

}  // namespace lockstep::runner
