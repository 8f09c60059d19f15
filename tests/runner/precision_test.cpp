#include "runner/measure/precision.h"

#include <ATen/Context.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>

#include <map>

#include "runner/data/loader.h"
#include "runner/measure/autocast.h"
#include "runner/measure/train.h"
#include "runner/models/zoo.h"
#include "sim/core/error.h"
#include "tests/catch.h"

namespace lockstep::runner {

TEST_CASE("Precisions have the names that records hold") {
  for (const std::string& name : precision_names()) CHECK(to_string(parse_precision(name)) == name);
  CHECK(to_string(Precision::fp32) == "fp32");
  CHECK(to_string(Precision::tf32) == "tf32");
  CHECK(to_string(Precision::bf16) == "bf16");
  CHECK_THROWS_WITH(parse_precision("fp16"), Contains("fp16") && Contains("fp32, tf32, bf16"));
  CHECK(precision_ending(Precision::fp32).empty());
  CHECK(precision_ending(Precision::bf16) == "-bf16");
}

TEST_CASE("TF32 is allowed at tf32 and nowhere else") {
  for (const Precision precision : {Precision::tf32, Precision::fp32, Precision::bf16}) {
    use_arithmetic(precision);
    CHECK(at::globalContext().allowTF32CuBLAS() == (precision == Precision::tf32));
    CHECK(at::globalContext().allowTF32CuDNN() == (precision == Precision::tf32));
  }
}

TEST_CASE("Autocast makes products bf16 while it lives") {
  const at::Tensor x = at::randn({2, 8}), weight = at::randn({4, 8});
  {
    const Autocast autocast(Precision::bf16, c10::kCPU);
    CHECK(at::linear(x, weight).scalar_type() == at::kBFloat16);
  }
  {
    const Autocast autocast(Precision::fp32, c10::kCPU);
    CHECK(at::linear(x, weight).scalar_type() == at::kFloat);
  }
  CHECK(at::linear(x, weight).scalar_type() == at::kFloat);
}

namespace {

/// Loss and first gradient of a first step.
struct Step {
  double loss = 0;
  at::Tensor gradient;
};

/// Keeps the gradients of the step.
class Keeping final : public Strategy {
 public:
  explicit Keeping(Model& model) : inner_(make_single(model)) {}
  std::string kind() const override { return "keeping"; }
  double loss_weight() const override { return 1; }
  void before_optimizer() override {
    inner_->before_optimizer();
    kept = inner_->gradients();
  }
  const std::vector<at::Tensor>& gradients() const override { return kept; }
  std::vector<BucketMoments> take_buckets() override { return {}; }

  std::vector<at::Tensor> kept;

 private:
  std::unique_ptr<Strategy> inner_;
};

Step first_step(const std::string& name, Precision precision) {
  Model model = make_model(name, c10::kCPU, 1);
  Keeping strategy(model);
  Trainer trainer(model, strategy, {}, nullptr, precision);
  const at::Tensor loss = trainer.step(random_batch(model, 4, 1, c10::kCPU));
  CHECK(loss.scalar_type() == at::kFloat);
  for (const at::Tensor& gradient : strategy.kept) CHECK(gradient.scalar_type() == at::kFloat);
  for (const at::Tensor& parameter : model.parameters()) {
    CHECK(parameter.scalar_type() == at::kFloat);
  }
  return {.loss = loss.item<double>(), .gradient = strategy.kept.front()};
}

}  // namespace

TEST_CASE("A step in bf16 is near the one in fp32 and leaves fp32 gradients and parameters") {
  // bf16 has 8 bits: a product is within 1/256, a few of them behind each other within a tenth. Max
  // pooling goes further: of pixels that round alike it takes another one.
  const std::map<std::string, double> bounds{{"small_cnn", 0.25}, {"small_gpt", 0.1}};
  for (const auto& [name, bound] : bounds) {
    INFO(name);
    const Step exact = first_step(name, Precision::fp32);
    const Step rounded = first_step(name, Precision::bf16);
    CHECK(rounded.loss != exact.loss);
    CHECK(rounded.loss == Approx(exact.loss).epsilon(0.02));
    const double apart = rounded.gradient.sub(exact.gradient).norm().item<double>();
    CHECK(apart < bound * exact.gradient.norm().item<double>());
  }
}

}  // namespace lockstep::runner
