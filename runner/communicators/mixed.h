#pragma once

#include <functional>
#include <memory>

#include "runner/communicators/communicator.h"
#include "runner/communicators/host_copies.h"
#include "runner/communicators/rendezvous.h"
#include "runner/communicators/shared_memory.h"

namespace lockstep::runner {

/// The workers of one host of which the last computes on cores and the others on GPUs. What it does
/// as a communicator goes through host memory and is waited for: it is there for parameters before
/// training and for agreements. Gradients take the ways that a strategy makes of what is below.
class MixedCommunicator final : public Communicator {
 public:
  /// `all`: of every worker, for tensors of the host. `gpus`: of the GPUs alone, rank by rank; null
  /// on the worker on cores and where there is one GPU. `store`, `gpus` and `copies` (of this
  /// worker's device) outlive it.
  MixedCommunicator(std::unique_ptr<Communicator> all, Communicator* gpus, HostCopies& copies,
                    Store& store);

  int rank() const override { return all_->rank(); }
  int size() const override { return all_->size(); }
  std::string backend() const override { return all_->backend(); }
  void all_reduce(const at::Tensor& flat) override;
  void broadcast(const at::Tensor& flat, int root) override;
  /// RunError: nobody gathers among unlike devices.
  void gather(const at::Tensor& flat, const at::Tensor& all, int root) override;
  void scatter(const std::vector<at::Tensor>& parts, const at::Tensor& flat, int root) override;
  void join() override {}
  void barrier() override { all_->barrier(); }
  /// None.
  std::vector<Transfer> take_transfers() override;
  MixedCommunicator* mixed() override { return this; }

  int gpu_count() const { return size() - 1; }
  bool on_cores() const { return rank() == size() - 1; }
  Communicator* gpus() const { return gpus_; }
  HostCopies& copies() const { return copies_; }
  /// Memory that all see; every worker calls it, with the same size.
  SharedMemory share(std::size_t bytes);

 private:
  void through_host(const at::Tensor& flat,
                    const std::function<void(const at::Tensor&)>& operation);

  std::unique_ptr<Communicator> all_;
  Communicator* gpus_;
  HostCopies& copies_;
  Store& store_;
  int shared_ = 0;  ///< times that memory was shared
};

}  // namespace lockstep::runner
