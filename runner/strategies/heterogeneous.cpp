#include <ATen/core/grad_mode.h>

#include "runner/strategies/flat_gradients.h"
#include "runner/strategies/strategy.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

/// Workers of unequal speed share a batch: each takes as many samples as options.split says, and
/// backward starts from its share n_i / N, so that the sum over workers is the mean over all
/// samples. After backward all gradients are copied into one flat tensor and reduced at once.
class Heterogeneous final : public Strategy {
 public:
  Heterogeneous(const StrategyOptions& options, Model& model, Communicator& communicator,
                Device& device)
      : model_(model), communicator_(communicator), device_(device) {
    share_state(model, communicator);
    weight_ = share_of(options, communicator.rank(), communicator.size());
    flat_ = flat_like(model);
    gradients_ = views_of(flat_, model);
  }

  std::string kind() const override { return "heterogeneous"; }
  double loss_weight() const override { return weight_; }

  void before_optimizer() override {
    const at::NoGradGuard no_grad;
    ready_ = device_.stamp();
    pack_gradients(model_, gradients_);
    communicator_.all_reduce(flat_);
    communicator_.join();
  }

  const std::vector<at::Tensor>& gradients() const override { return gradients_; }

  std::vector<BucketMoments> take_buckets() override {
    const std::vector<Transfer> transfers = communicator_.take_transfers();
    // The communicator may hold more than one step: the last one counts.
    LOCKSTEP_ASSERT(!transfers.empty(), "a step reduces its gradients");
    const Transfer& last = transfers.back();
    return {{.bytes = last.bytes,
             .ready = device_.moment(ready_),
             .launch = last.launch,
             .done = last.done}};
  }

 private:
  Model& model_;
  Communicator& communicator_;
  Device& device_;
  double weight_ = 1;
  at::Tensor flat_;
  std::vector<at::Tensor> gradients_;  ///< views of flat_, by parameter
  std::size_t ready_ = 0;              ///< stamp: the end of backward
};

}  // namespace

std::unique_ptr<Strategy> make_heterogeneous(const StrategyOptions& options, Model& model,
                                             Communicator& communicator, Device& device) {
  if (MixedCommunicator* workers = communicator.mixed()) {
    return make_mixed(options, model, *workers);
  }
  return std::make_unique<Heterogeneous>(options, model, communicator, device);
}

}  // namespace lockstep::runner
