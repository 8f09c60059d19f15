#pragma once

#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "runner/communicators/communicator.h"
#include "runner/communicators/rendezvous.h"
#include "runner/measure/cuda/device_cuda.h"

namespace lockstep::runner {

/// NCCL over one GPU per rank, on a communication stream of its own. Everything but barrier() and
/// take_transfers() works inside a CUDA graph capture of the compute stream; join() must be called
/// before the capture ends.
///
/// A rank whose host waits here for longer than `patience` gives up: a peer has died or hangs. The
/// communicator is aborted and the call throws RunError; where even that does not return, the
/// process ends with exit code 3.
class NcclCommunicator : public Communicator {
 public:
  static constexpr std::chrono::seconds kPatience{25};

  /// Meets the other ranks through `store`: every rank must call it. `device` outlives it.
  NcclCommunicator(Store& store, int rank, int size, CudaDevice& device,
                   std::chrono::seconds patience = kPatience);
  ~NcclCommunicator() override;
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string backend() const override { return "nccl"; }
  void all_reduce(const at::Tensor& flat) override;
  void broadcast(const at::Tensor& flat, int root) override;
  void gather(const at::Tensor& flat, const at::Tensor& all, int root) override;
  void scatter(const std::vector<at::Tensor>& parts, const at::Tensor& flat, int root) override;
  void join() override;
  void barrier() override;
  /// Empty unless the device stamps.
  std::vector<Transfer> take_transfers() override;

  /// Needs take_control().
  std::unique_ptr<FusionLane> make_lane(std::size_t gradients) override;
  /// Between the hosts of the same ranks.
  void take_control(std::unique_ptr<Communicator> control) { control_ = std::move(control); }
  /// Null: none.
  Communicator* control() const { return control_.get(); }
  /// all_reduce(), without waiting for the compute stream.
  void all_reduce_beside(const at::Tensor& flat);

  /// The communication stream, and the same operations without waiting for the compute stream.
  c10::cuda::CUDAStream stream() const { return stream_; }
  void enqueue_all_reduce(const at::Tensor& flat);
  void enqueue_broadcast(const at::Tensor& flat, int root);
  void enqueue_gather(const at::Tensor& flat, const at::Tensor& all, int root);
  void enqueue_scatter(const std::vector<at::Tensor>& parts, const at::Tensor& flat, int root);
  /// Any other operation of NCCL; `what` names it where it fails.
  using Operation = std::function<ncclResult_t(ncclComm_t communicator, cudaStream_t stream)>;
  void enqueue(std::string_view what, const Operation& operation);
  /// What is queued from here on comes after what the compute stream holds.
  void follow_compute() { fork(); }
  /// Waits for what was forked, and for nothing where nothing was: ends a capture that broke off.
  void rejoin();
  /// The host waits for a stream, as long as the patience lasts.
  void synchronize(c10::cuda::CUDAStream stream);

 private:
  class Watched;
  void watch(const std::stop_token& stop);
  void give_up(const std::string& why);
  void throw_if_aborted() const;
  void fork();
  void stamp();
  void note(CollectiveKind kind, const at::Tensor& flat);

  int rank_, size_;
  CudaDevice& device_;
  std::chrono::seconds patience_;
  c10::cuda::CUDAStream stream_;
  ncclComm_t comm_ = nullptr;
  cudaEvent_t fork_ = nullptr, join_ = nullptr;
  at::Tensor token_;                       ///< what a barrier sums
  std::unique_ptr<Communicator> control_;  ///< null: none
  EventPool stamps_;                       ///< two per transfer
  std::vector<Transfer> transfers_;
  std::atomic<std::int64_t> waiting_since_{0};  ///< steady clock, ns; 0: not waiting
  std::atomic<bool> aborted_{false};
  std::jthread watchdog_;
};

}  // namespace lockstep::runner
