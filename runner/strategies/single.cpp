#include "runner/strategies/strategy.h"

namespace lockstep::runner {

namespace {

/// One worker: gradients are used as backward leaves them.
class Single final : public Strategy {
 public:
  explicit Single(Model& model) : model_(model), gradients_(model.parameters().size()) {}

  std::string kind() const override { return "single"; }
  double loss_weight() const override { return 1.0; }
  void before_optimizer() override {
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      gradients_[i] = model_.parameters()[i].grad();
    }
  }
  const std::vector<at::Tensor>& gradients() const override { return gradients_; }
  void after_optimizer() override {
    for (at::Tensor& gradient : gradients_) gradient.reset();
  }
  std::vector<BucketMoments> take_buckets() override { return {}; }

 private:
  Model& model_;
  std::vector<at::Tensor> gradients_;
};

}  // namespace

std::unique_ptr<Strategy> make_single(Model& model) {
  return std::make_unique<Single>(model);
}

}  // namespace lockstep::runner
