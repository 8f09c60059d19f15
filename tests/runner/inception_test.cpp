#include <ATen/ops/allclose.h>
#include <ATen/ops/conv2d.h>

#include <algorithm>
#include <array>

#include "runner/data/loader.h"
#include "runner/models/layers.h"
#include "runner/models/zoo.h"
#include "tests/catch.h"
#include "tests/runner/outputs.h"

namespace lockstep::runner {
namespace {

using testing::outputs;

TEST_CASE("Inception v3 is torchvision's without its auxiliary classifier") {
  Model model = make_model("inception_v3", c10::kCPU, 1);
  CHECK(model.parameter_count() == 23'834'568);
  const auto units =
      std::ranges::count(model.layers(), std::string("conv_norm"), &ModelLayer::kind);
  CHECK(units == 94);
  // Each normalises with three buffers: two of floats, a counter.
  REQUIRE(model.flat_buffers().size() == 2);
  CHECK(model.flat_buffers()[1].numel() == 94);

  auto floats = outputs(model);
  CHECK(floats["Conv2d_1a_3x3"] == 32 * 149 * 149);
  CHECK(floats["Conv2d_2a_3x3"] == 32 * 147 * 147);
  CHECK(floats["Conv2d_2b_3x3"] == 64 * 147 * 147);
  CHECK(floats["maxpool1"] == 64 * 73 * 73);
  CHECK(floats["Conv2d_3b_1x1"] == 80 * 73 * 73);
  CHECK(floats["Conv2d_4a_3x3"] == 192 * 71 * 71);
  CHECK(floats["maxpool2"] == 192 * 35 * 35);
  CHECK(floats["Mixed_5b.avg_pool"] == 192 * 35 * 35);
  CHECK(floats["Mixed_5b.cat"] == 256 * 35 * 35);
  CHECK(floats["Mixed_5c.cat"] == 288 * 35 * 35);
  CHECK(floats["Mixed_5d.cat"] == 288 * 35 * 35);
  CHECK(floats["Mixed_6a.max_pool"] == 288 * 17 * 17);
  CHECK(floats["Mixed_6a.cat"] == 768 * 17 * 17);
  CHECK(floats["Mixed_6b.branch7x7_2"] == 128 * 17 * 17);
  CHECK(floats["Mixed_6e.cat"] == 768 * 17 * 17);
  CHECK(floats["Mixed_7a.cat"] == 1280 * 8 * 8);
  CHECK(floats["Mixed_7b.branch3x3_cat"] == 768 * 8 * 8);
  CHECK(floats["Mixed_7c.cat"] == 2048 * 8 * 8);
  CHECK(floats["avgpool"] == 2048);
  CHECK(floats["fc"] == 1000);
}

TEST_CASE("A convolution unit has the values of its three parts") {
  Model model("unit", {3, 8, 8}, 2);
  seed_parameters(1);
  add_conv_unit(model, "unit", Model::kInput,
                {.in = 3, .out = 4, .height = 1, .width = 3, .epsilon = 0.5});
  model.finish(c10::kCPU);
  const ModelLayer& unit = model.layers()[0];
  const at::Tensor image = random_batch(model, 2, 1, c10::kCPU).input;
  const at::Tensor x =
      at::conv2d(image, unit.parameters[0].tensor, {}, 1, std::array<std::int64_t, 2>{0, 1});
  const std::array<std::int64_t, 3> not_channels{0, 2, 3};
  const at::Tensor mean = x.mean(not_channels, true);
  const at::Tensor variance = x.sub(mean).square().mean(not_channels, true);
  // The weight is one and the bias zero.
  const at::Tensor expected = x.sub(mean).div(variance.add(0.5).sqrt()).clamp_min(0);
  const std::vector<at::Tensor> inputs{image};
  const at::Tensor out = unit.forward(unit, inputs);
  CHECK(at::allclose(out, expected, 1e-4, 1e-5));
  CHECK(unit.buffers[2].tensor.item<std::int64_t>() == 1);
  // A tenth of the batch's mean has gone into the running one.
  CHECK(at::allclose(unit.buffers[0].tensor, mean.flatten().mul(0.1), 1e-4, 1e-6));
}

}  // namespace
}  // namespace lockstep::runner
