#include "runner/models/zoo.h"
#include "sim/core/error.h"
#include "tests/catch.h"
#include "tests/runner/outputs.h"

namespace lockstep::runner {
namespace {

using testing::outputs;

TEST_CASE("ResNet-50 is torchvision's") {
  Model model = make_model("resnet50", c10::kCPU, 1);
  CHECK(model.parameter_count() == 25'557'032);
  auto floats = outputs(model);
  CHECK(floats["conv1"] == 64 * 112 * 112);
  CHECK(floats["maxpool"] == 64 * 56 * 56);
  CHECK(floats["layer1.2.relu3"] == 256 * 56 * 56);
  CHECK(floats["layer2.0.conv1"] == 128 * 56 * 56);  // the stride is in the 3x3 convolution
  CHECK(floats["layer2.0.conv2"] == 128 * 28 * 28);
  CHECK(floats["layer4.2.relu3"] == 2048 * 7 * 7);
  CHECK(floats["avgpool"] == 2048);
  CHECK(floats["fc"] == 1000);
}

TEST_CASE("ResNet-101 and ResNet-152 are torchvision's") {
  Model model = make_model("resnet101", c10::kCPU, 1);
  CHECK(model.parameter_count() == 44'549'160);
  auto floats = outputs(model);
  CHECK(floats["layer2.3.relu3"] == 512 * 28 * 28);
  CHECK(floats["layer3.22.relu3"] == 1024 * 14 * 14);  // the last of 23 blocks
  CHECK(floats["layer4.2.relu3"] == 2048 * 7 * 7);
  CHECK(floats["fc"] == 1000);
  CHECK(make_model("resnet152", c10::kCPU, 1).parameter_count() == 60'192'808);
}

TEST_CASE("ResNet-18 for CIFAR keeps the image's size in its stem") {
  Model model = make_model("resnet18_cifar", c10::kCPU, 1);
  CHECK(model.parameter_count() == 11'173'962);
  auto floats = outputs(model);
  CHECK(floats["conv1"] == 64 * 32 * 32);
  CHECK(floats["layer1.1.relu2"] == 64 * 32 * 32);
  CHECK(floats["layer2.0.downsample.0"] == 128 * 16 * 16);
  CHECK(floats["layer4.1.relu2"] == 512 * 4 * 4);
  CHECK(floats["fc"] == 10);
}

TEST_CASE("Without batch normalisation ResNet-18 has biases instead") {
  // 4800 channels are normalised: 64 + 4 * 64 + 5 * 128 + 5 * 256 + 5 * 512. Each loses a weight
  // and a bias, and gains the convolution's bias.
  const std::string name = without_batch_norm("resnet18_cifar");
  Model model = make_model(name, c10::kCPU, 1);
  CHECK(model.parameter_count() == 11'173'962 - 4800);
  CHECK(model.flat_buffers().empty());
  for (const ModelLayer& layer : model.layers()) CHECK(layer.kind != "norm");
  auto floats = outputs(model);
  CHECK(floats["layer4.1.relu2"] == 512 * 4 * 4);
  CHECK_THROWS_WITH(without_batch_norm("vgg16"), Contains("no such variant of vgg16"));
}

TEST_CASE("VGG-16 has its ImageNet head") {
  Model model = make_model("vgg16", c10::kCPU, 1);
  CHECK(model.parameter_count() == 138'357'544);
  auto floats = outputs(model);
  CHECK(floats["features.0"] == 64 * 224 * 224);
  CHECK(floats["features.30"] == 512 * 7 * 7);
  CHECK(floats["classifier.0"] == 4096);
  CHECK(floats["classifier.6"] == 1000);
}

}  // namespace
}  // namespace lockstep::runner
