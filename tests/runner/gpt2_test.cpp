#include <ATen/ops/allclose.h>
#include <ATen/ops/full_like.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runner/data/loader.h"
#include "runner/measure/bench.h"
#include "runner/models/zoo.h"
#include "sim/core/error.h"
#include "tests/catch.h"
#include "tests/runner/outputs.h"

namespace lockstep::runner {
namespace {

using testing::outputs;

constexpr int kPositions = 32;  // of small_gpt

double loss_of(Model& model, const Batch& batch) {
  return model.loss(batch.input, batch.target).item<double>();
}

/// The same targets, but those of all positions except one are ignored.
Batch at_position(const Batch& batch, std::int64_t position) {
  constexpr std::int64_t kIgnored = -100;  // cross_entropy_loss's own mark
  at::Tensor target = at::full_like(batch.target, kIgnored);
  target.select(1, position).copy_(batch.target.select(1, position));
  return {.input = batch.input, .target = target};
}

}  // namespace

TEST_CASE("GPT-2 small has its published parameters and 512 positions") {
  Model model = make_model("gpt2_small", c10::kCPU, 1);
  CHECK(model.parameter_count() == 124'439'808);
  CHECK(model.samples() == SampleKind::tokens);
  CHECK(model.input_bytes() == 512 * 8);
  CHECK(model.flat_buffers().empty());
  auto floats = outputs(model);
  CHECK(floats["wte"] == 512 * 768);
  CHECK(floats["h.0.attn.c_attn"] == 512 * 3 * 768);
  CHECK(floats["h.0.attn.attention"] == 512 * 768);
  CHECK(floats["h.11.mlp.c_fc"] == 512 * 4 * 768);
  CHECK(floats["h.11.add_2"] == 512 * 768);
  CHECK(floats["ln_f"] == 512 * 768);
  CHECK(floats["lm_head"] == 512 * 50257);
  CHECK_FALSE(floats.contains("drop"));
  // Before it has learned anything, every word is about as likely.
  CHECK(loss_of(model, random_batch(model, 1, 7, c10::kCPU)) ==
        Approx(std::log(50257.0)).margin(0.3));
}

TEST_CASE("GPT-2 with dropout has the same parameters and more layers") {
  const std::string name = with_dropout("gpt2_small");
  const Model model = make_model(name, c10::kCPU, 1);
  CHECK(model.parameter_count() == 124'439'808);
  const auto dropping = [](const ModelLayer& layer) { return layer.dropout == 0.1; };
  CHECK(std::ranges::count_if(model.layers(), dropping) == 1 + 12 * 3);
  CHECK_THROWS_WITH(with_dropout("vgg11"), Contains("no such variant of vgg11"));
}

TEST_CASE("Random words lie below the vocabulary, and each target is the word behind") {
  const Model model = make_model("small_gpt", c10::kCPU, 1);
  const Batch batch = random_batch(model, 3, 1, c10::kCPU);
  REQUIRE(batch.input.sizes() == at::IntArrayRef({3, kPositions}));
  REQUIRE(batch.target.sizes() == at::IntArrayRef({3, kPositions}));
  CHECK(batch.input.scalar_type() == at::kLong);
  CHECK(batch.input.is_contiguous());
  CHECK(batch.target.is_contiguous());
  CHECK(batch.input.max().item<std::int64_t>() < 1000);
  CHECK(batch.input.min().item<std::int64_t>() >= 0);
  CHECK(batch.input.narrow(1, 1, kPositions - 1).equal(batch.target.narrow(1, 0, kPositions - 1)));
  CHECK_FALSE(random_batch(model, 3, 2, c10::kCPU).input.equal(batch.input));
}

TEST_CASE("A position sees what is before it, and nothing behind") {
  Model model = make_model("small_gpt", c10::kCPU, 1);
  const Batch batch = random_batch(model, 2, 1, c10::kCPU);
  Batch other = batch;
  other.input = batch.input.clone();
  other.input.select(1, 10).add_(1).remainder_(1000);
  CHECK(loss_of(model, at_position(batch, 9)) == loss_of(model, at_position(other, 9)));
  CHECK(loss_of(model, at_position(batch, 10)) != loss_of(model, at_position(other, 10)));
  CHECK(loss_of(model, at_position(batch, 20)) != loss_of(model, at_position(other, 20)));
}

TEST_CASE("The tied weight is one parameter whose gradient is the sum over both of its layers") {
  Model model = make_model("small_gpt", c10::kCPU, 1);
  // 1000 and 64 words and positions of 64; in a block 12 * 64^2 + 13 * 64; a last norm.
  CHECK(model.parameter_count() == 1064 * 64 + 2 * (12 * 64 * 64 + 13 * 64) + 2 * 64);
  const Batch batch = random_batch(model, 2, 1, c10::kCPU);
  model.loss(batch.input, batch.target).backward();
  const at::Tensor weight = model.parameters()[0];

  // The same forward with a copy of its own in each of the two places.
  const at::Tensor words = weight.detach().clone().requires_grad_(true);
  const at::Tensor scores = weight.detach().clone().requires_grad_(true);
  std::vector<at::Tensor> results;
  for (ModelLayer layer : model.layers()) {
    if (layer.name == "wte") layer.parameters[0].tensor = words;
    if (layer.ties) layer.tied = scores;
    std::vector<at::Tensor> inputs;
    for (const int from : layer.inputs) {
      inputs.push_back(from == Model::kInput    ? batch.input
                       : from == Model::kTarget ? batch.target
                                                : results[static_cast<std::size_t>(from)]);
    }
    results.push_back(layer.forward(layer, inputs));
  }
  results.back().backward();
  CHECK(scores.grad().abs().max().item<double>() > 1e-6);
  CHECK(words.grad().abs().max().item<double>() > 1e-6);
  CHECK(at::allclose(weight.grad(), words.grad().add(scores.grad()), 1e-4, 1e-7));
}

TEST_CASE("The tied gradient is ready last, after the embedding's backward, and once") {
  const auto device = make_cpu_device(1);
  Bench bench({.model = "small_gpt", .batch = 2}, nullptr, *device);
  std::vector<int> ready = bench.ready_order();
  REQUIRE(ready.size() == bench.model().parameters().size());
  CHECK(ready.back() == 0);
  const StepParts parts = bench.profiled_step();
  const Profile profile = host_profile(bench.model(), {parts}, ready);
  CHECK(profile.layers.front().parameters.at(0).ready_order == static_cast<int>(ready.size()) - 1);
  CHECK(parameter_bytes(profile) == Bytes{bench.model().parameter_count() * 4});

  std::vector<int> backward(bench.model().layers().size());
  std::iota(backward.rbegin(), backward.rend(), 0);
  CHECK(parts.backward_order == backward);
  std::ranges::sort(ready);
  std::vector<int> all(ready.size());
  std::iota(all.begin(), all.end(), 0);
  CHECK(ready == all);
  CHECK(bench.input_bytes() == Bytes{2 * kPositions * 8});
}

TEST_CASE("Dropout drops, differently each time, until nothing is to be dropped") {
  Model dropping = make_model("small_gpt_dropout", c10::kCPU, 3);
  Model plain = make_model("small_gpt", c10::kCPU, 3);
  const Batch batch = random_batch(plain, 2, 1, c10::kCPU);
  CHECK(loss_of(dropping, batch) != loss_of(dropping, batch));
  dropping.drop_nothing();
  CHECK(loss_of(dropping, batch) == loss_of(plain, batch));
}

TEST_CASE("Data sets of images are refused for a network of words") {
  const Model model = make_model("small_gpt", c10::kCPU, 1);
  const LoaderOptions options{.data = "fashion-mnist"};
  CHECK_THROWS_WITH(check_fits(model, {}, options, 4), Contains("small_gpt takes rows of words"));
}

}  // namespace lockstep::runner
