#include "runner/strategies/strategy.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

/// After backward every gradient is reduced on its own, in the order of the parameters: what the
/// CS744 assignment asks for in task 2b. Nothing overlaps with compute.
class AllReduce final : public Strategy {
 public:
  AllReduce(Model& model, Communicator& communicator, Device& device)
      : model_(model),
        communicator_(communicator),
        device_(device),
        gradients_(model.parameters().size()) {
    share_state(model, communicator);
  }

  std::string kind() const override { return "all_reduce"; }
  double loss_weight() const override { return 1.0 / communicator_.size(); }

  void before_optimizer() override {
    ready_ = device_.stamp();
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      gradients_[i] = model_.parameters()[i].grad();
      communicator_.all_reduce(gradients_[i]);
    }
    communicator_.join();
  }

  const std::vector<at::Tensor>& gradients() const override { return gradients_; }
  void after_optimizer() override {
    for (at::Tensor& gradient : gradients_) gradient.reset();
  }

  std::vector<BucketMoments> take_buckets() override {
    const std::vector<Transfer> transfers = communicator_.take_transfers();
    // The communicator may hold more than one step: the last one counts.
    LOCKSTEP_ASSERT(transfers.size() >= gradients_.size(), "a step reduces every gradient");
    std::vector<BucketMoments> moments;
    for (std::size_t i = transfers.size() - gradients_.size(); i < transfers.size(); ++i) {
      moments.push_back({.bytes = transfers[i].bytes,
                         .ready = device_.moment(ready_),
                         .launch = transfers[i].launch,
                         .done = transfers[i].done});
    }
    return moments;
  }

 private:
  Model& model_;
  Communicator& communicator_;
  Device& device_;
  std::vector<at::Tensor> gradients_;
  std::size_t ready_ = 0;  ///< stamp: the end of backward
};

}  // namespace

std::unique_ptr<Strategy> make_all_reduce(Model& model, Communicator& communicator,
                                          Device& device) {
  return std::make_unique<AllReduce>(model, communicator, device);
}

}  // namespace lockstep::runner
