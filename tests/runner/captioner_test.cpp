#include <algorithm>
#include <cmath>
#include <numeric>

#include "runner/data/loader.h"
#include "runner/measure/bench.h"
#include "runner/measure/train.h"
#include "runner/models/zoo.h"
#include "sim/core/error.h"
#include "tests/catch.h"
#include "tests/runner/outputs.h"

namespace lockstep::runner {
namespace {

std::int64_t frozen_parameters(const Model& model) {
  std::int64_t count = 0;
  for (const ModelLayer& layer : model.layers()) {
    for (const NamedTensor& parameter : layer.parameters) {
      CHECK(parameter.tensor.requires_grad() != layer.frozen);
      if (layer.frozen) count += parameter.tensor.numel();
    }
  }
  return count;
}

double train(Precision precision, int steps) {
  Model model = make_model("small_captioner", c10::kCPU, 1);
  const auto strategy = make_single(model);
  Trainer trainer(model, *strategy, {}, nullptr, precision);
  const Batch batch = random_batch(model, 4, 1, c10::kCPU);
  double loss = 0;
  for (int i = 0; i < steps; ++i) loss = trainer.step(batch).item<double>();
  CHECK(model.parameters().front().scalar_type() == at::kFloat);
  return loss;
}

}  // namespace

TEST_CASE("The captioner trains its decoder and what feeds it, behind a frozen ResNet-152") {
  const Model model = make_model("captioner", c10::kCPU, 1);
  // linear 2048 * 256 + 256, norm 2 * 256, words 9956 * 256, gates 4 * 512 * (256 + 512) and twice
  // 4 * 512 biases, scores 512 * 9956 + 9956
  CHECK(model.parameter_count() == 524'544 + 512 + 2'548'736 + 1'572'864 + 4'096 + 5'107'428);
  CHECK(model.parameter_count() == 9'758'180);
  // torchvision's ResNet-152 without its classifier, 2048 * 1000 + 1000
  CHECK(frozen_parameters(model) == 60'192'808 - 2'049'000);
  CHECK(model.parameters().size() == 2 + 2 + 1 + 4 + 2);
  CHECK(model.input_bytes() == (3 * 224 * 224 + 20) * 4);
}

TEST_CASE("An image and its caption make a sample") {
  Model model = make_model("small_captioner", c10::kCPU, 1);
  const Batch batch = random_batch(model, 3, 1, c10::kCPU);
  REQUIRE(batch.input.sizes() == at::IntArrayRef({3, 3 * 32 * 32 + 8}));
  REQUIRE(batch.target.sizes() == at::IntArrayRef({3, 8}));
  CHECK(batch.input.narrow(1, 3 * 32 * 32, 8).to(at::kLong).equal(batch.target));
  CHECK(batch.target.max().item<std::int64_t>() < 1000);
  auto floats = testing::outputs(model);
  CHECK(floats["image"] == 3 * 32 * 32);
  CHECK(floats["encoder.resnet.avgpool"] == 2048);
  CHECK(floats["decoder.embed"] == 7 * 32);
  CHECK(floats["decoder.cat"] == 8 * 32);
  CHECK(floats["decoder.lstm"] == 8 * 64);
  CHECK(floats["decoder.linear"] == 8 * 1000);
  CHECK_THROWS_WITH(check_fits(model, {}, {.data = "cifar10"}, 4),
                    Contains("takes images with captions"));
}

TEST_CASE("A captioner learns the captions of its images, also in bf16") {
  const double first = train(Precision::fp32, 1);
  CHECK(first == Approx(std::log(1000.0)).margin(0.3));
  CHECK(train(Precision::fp32, 100) < first - 0.5);
  const double rounded = train(Precision::bf16, 1);
  CHECK(rounded == Approx(first).epsilon(0.02));
  CHECK(train(Precision::bf16, 100) < first - 0.5);
}

TEST_CASE("A word sees the words before it, and the image") {
  Model model = make_model("small_captioner", c10::kCPU, 1);
  const Batch batch = random_batch(model, 2, 1, c10::kCPU);
  at::Tensor other = batch.input.clone();
  other.select(1, 3 * 32 * 32 + 4).add_(1).remainder_(1000);  // the fifth of eight
  const at::Tensor scores = model.output(batch.input), others = model.output(other);
  CHECK(scores.narrow(1, 0, 5).equal(others.narrow(1, 0, 5)));
  CHECK_FALSE(scores.select(1, 5).equal(others.select(1, 5)));
  other = batch.input.clone();
  other.narrow(1, 0, 3 * 32 * 32).mul_(-1);
  CHECK_FALSE(scores.select(1, 0).equal(model.output(other).select(1, 0)));
}

TEST_CASE("Frozen layers have no backward and no gradients in a profile") {
  const auto device = make_cpu_device(1);
  Bench bench({.model = "small_captioner", .batch = 2}, nullptr, *device);
  const std::vector<int> ready = bench.ready_order();
  REQUIRE(ready.size() == 11);
  const Profile profile = host_profile(bench.model(), {bench.profiled_step()}, ready);
  CHECK(parameter_bytes(profile) == Bytes{bench.model().parameter_count() * 4});
  std::vector<int> places;
  const std::size_t layers = profile.layers.size();
  for (std::size_t i = 0; i < layers; ++i) {
    const Layer& layer = profile.layers[i];
    places.push_back(layer.backward_order);
    const bool trained = !bench.model().layers()[i].frozen;
    INFO(layer.name);
    CHECK((layer.backward.device > Time{}) == trained);
    CHECK(layer.forward.device > Time{});
    if (!trained) CHECK(layer.parameters.empty());
    if (!trained) CHECK(layer.backward_order == static_cast<int>(layers - 1 - i));
  }
  std::ranges::sort(places);
  std::vector<int> all(layers);
  std::iota(all.begin(), all.end(), 0);
  CHECK(places == all);
}

TEST_CASE("Layers without backward come last, the last of them first") {
  CHECK(places_in_backward({4, 2}, 5) == std::vector<int>{4, 3, 1, 2, 0});
  CHECK(places_in_backward({1, 0}, 2) == std::vector<int>{1, 0});
}

}  // namespace lockstep::runner
