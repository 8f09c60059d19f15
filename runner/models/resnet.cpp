#include <array>
#include <string>

#include "runner/models/layers.h"
#include "runner/models/zoo.h"

// He, Zhang, Ren & Sun 2016, with torchvision's names and its stride in the 3x3 convolution of a
// bottleneck.
namespace lockstep::runner {

namespace {

/// Convolution without bias, then batch normalisation; or a convolution with bias, where `norm` is
/// empty.
int add_conv_norm(Model& model, const std::string& conv, const std::string& norm, int input,
                  ConvShape shape) {
  shape.bias = norm.empty();
  if (shape.bias) return add_conv(model, conv, input, shape);
  return add_norm(model, norm, add_conv(model, conv, input, shape), shape.out);
}

struct Block {
  int in = 0;        ///< channels that come in
  int width = 0;     ///< channels of the inner convolutions
  int out = 0;       ///< channels that go out
  int stride = 1;    ///< of the whole block
  bool norm = true;  ///< batch normalisation behind each convolution

  std::string norm_name(const std::string& name) const { return norm ? name : ""; }
};

int add_shortcut(Model& model, const std::string& name, int input, const Block& block) {
  if (block.stride == 1 && block.in == block.out) return input;
  return add_conv_norm(
      model, name + "downsample.0", block.norm_name(name + "downsample.1"), input,
      {.in = block.in, .out = block.out, .kernel = 1, .stride = block.stride, .padding = 0});
}

int add_basic_block(Model& model, const std::string& name, int input, const Block& block) {
  int x = add_conv_norm(model, name + "conv1", block.norm_name(name + "bn1"), input,
                        {.in = block.in, .out = block.width, .stride = block.stride});
  x = add_relu(model, name + "relu1", x);
  x = add_conv_norm(model, name + "conv2", block.norm_name(name + "bn2"), x,
                    {.in = block.width, .out = block.out});
  const int shortcut = add_shortcut(model, name, input, block);
  return add_relu(model, name + "relu2", add_sum(model, name + "add", x, shortcut));
}

int add_bottleneck(Model& model, const std::string& name, int input, const Block& block) {
  int x = add_conv_norm(model, name + "conv1", block.norm_name(name + "bn1"), input,
                        {.in = block.in, .out = block.width, .kernel = 1, .padding = 0});
  x = add_relu(model, name + "relu1", x);
  x = add_conv_norm(model, name + "conv2", block.norm_name(name + "bn2"), x,
                    {.in = block.width, .out = block.width, .stride = block.stride});
  x = add_relu(model, name + "relu2", x);
  x = add_conv_norm(model, name + "conv3", block.norm_name(name + "bn3"), x,
                    {.in = block.width, .out = block.out, .kernel = 1, .padding = 0});
  const int shortcut = add_shortcut(model, name, input, block);
  return add_relu(model, name + "relu3", add_sum(model, name + "add", x, shortcut));
}

using AddBlock = int (*)(Model&, const std::string&, int, const Block&);

struct Features {
  int layer = 0, channels = 0;
};

/// The four stages and the mean over the image. `expansion`: outgoing over inner channels of a
/// block.
Features add_stages(Model& model, int x, const std::array<int, 4>& depths, AddBlock add_block,
                    int expansion, const std::string& prefix, bool norm) {
  constexpr int kStemChannels = 64;
  int channels = kStemChannels;
  for (int stage = 0; stage < 4; ++stage) {
    const int width = kStemChannels << stage;
    for (int i = 0; i < depths[static_cast<std::size_t>(stage)]; ++i) {
      const std::string name =
          prefix + "layer" + std::to_string(stage + 1) + "." + std::to_string(i) + ".";
      const Block block{.in = channels,
                        .width = width,
                        .out = width * expansion,
                        .stride = stage > 0 && i == 0 ? 2 : 1,
                        .norm = norm};
      x = add_block(model, name, x, block);
      channels = block.out;
    }
  }
  return {.layer = add_mean_pool(model, prefix + "avgpool", x), .channels = channels};
}

/// With the classifier and the loss.
void add_trunk(Model& model, int x, const std::array<int, 4>& depths, AddBlock add_block,
               int expansion, bool norm = true) {
  const Features features = add_stages(model, x, depths, add_block, expansion, "", norm);
  add_cross_entropy(model,
                    add_linear(model, "fc", features.layer, features.channels, model.classes()));
}

Model make_resnet18(const std::string& name, bool norm) {
  Model model(name, {3, 32, 32}, 10);
  int x = add_conv_norm(model, "conv1", norm ? "bn1" : "", Model::kInput, {.in = 3, .out = 64});
  x = add_relu(model, "relu", x);
  add_trunk(model, x, {2, 2, 2, 2}, add_basic_block, 1, norm);
  return model;
}

constexpr int kExpansion = 4;  // of bottlenecks

int add_imagenet_stem(Model& model, int input, const std::string& prefix) {
  int x = add_conv_norm(model, prefix + "conv1", prefix + "bn1", input,
                        {.in = 3, .out = 64, .kernel = 7, .stride = 2, .padding = 3});
  x = add_relu(model, prefix + "relu", x);
  return add_max_pool(model, prefix + "maxpool", x, 3, 2, 1);
}

/// Of ImageNet, 224x224.
Model make_bottlenecks(const std::string& name, const std::array<int, 4>& depths) {
  Model model(name, {3, 224, 224}, 1000);
  add_trunk(model, add_imagenet_stem(model, Model::kInput, ""), depths, add_bottleneck, kExpansion);
  return model;
}

}  // namespace

int add_bottleneck_features(Model& model, const std::string& prefix, int input,
                            const std::array<int, 4>& depths) {
  return add_stages(model, add_imagenet_stem(model, input, prefix), depths, add_bottleneck,
                    kExpansion, prefix, /*norm=*/true)
      .layer;
}

Model resnet18_cifar() {
  return make_resnet18("resnet18_cifar", true);
}

Model resnet18_cifar_no_batchnorm() {
  return make_resnet18("resnet18_cifar_no_batchnorm", false);
}

Model resnet50() {
  return make_bottlenecks("resnet50", {3, 4, 6, 3});
}

Model resnet101() {
  return make_bottlenecks("resnet101", {3, 4, 23, 3});
}

Model resnet152() {
  return make_bottlenecks("resnet152", {3, 8, 36, 3});
}

}  // namespace lockstep::runner
