#include "runner/models/layers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/add.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <cmath>

namespace lockstep::runner {

namespace {

using Inputs = ModelLayer::Inputs;

constexpr double kNormMomentum = 0.1;
constexpr double kNormEpsilon = 1e-5;

std::vector<NamedTensor> norm_buffers(int channels) {
  return {{"running_mean", at::zeros({channels})},
          {"running_var", at::ones({channels})},
          {"num_batches_tracked", at::zeros({}, at::kLong)}};
}

/// Batch normalisation with the buffers of `layer`, and its weight and bias from parameter `first`
/// on.
at::Tensor normalised_over_batch(const ModelLayer& layer, std::size_t first, const at::Tensor& x,
                                 double epsilon) {
  at::Tensor batches = layer.buffers[2].tensor;
  batches.add_(1);
  return at::batch_norm(x, layer.parameters[first].tensor, layer.parameters[first + 1].tensor,
                        layer.buffers[0].tensor, layer.buffers[1].tensor, /*training=*/true,
                        kNormMomentum, epsilon, /*cudnn_enabled=*/true);
}

}  // namespace

at::Generator& parameter_draws() {
  thread_local at::Generator generator = at::detail::createCPUGenerator();
  return generator;
}

void seed_parameters(std::uint64_t seed) {
  parameter_draws().set_current_seed(seed);
  at::manual_seed(seed);
}

at::Tensor draw_uniform(at::IntArrayRef shape, std::int64_t fan_in) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
  return at::empty(shape).uniform_(-bound, bound, parameter_draws());
}

int add_conv(Model& model, const std::string& name, int input, const ConvShape& shape) {
  const std::int64_t fan_in = std::int64_t{shape.in} * shape.kernel * shape.kernel;
  ModelLayer layer{.name = name, .kind = "conv", .inputs = {input}};
  layer.parameters.push_back(
      {"weight", draw_uniform({shape.out, shape.in, shape.kernel, shape.kernel}, fan_in)});
  if (shape.bias) layer.parameters.push_back({"bias", draw_uniform({shape.out}, fan_in)});
  layer.forward = [shape](const ModelLayer& self, Inputs in) {
    const at::Tensor bias = shape.bias ? self.parameters[1].tensor : at::Tensor();
    return at::conv2d(in[0], self.parameters[0].tensor, bias, shape.stride, shape.padding);
  };
  return model.add(std::move(layer));
}

int add_norm(Model& model, const std::string& name, int input, int channels) {
  ModelLayer layer{.name = name, .kind = "norm", .inputs = {input}};
  layer.parameters = {{"weight", at::ones({channels})}, {"bias", at::zeros({channels})}};
  layer.buffers = norm_buffers(channels);
  layer.forward = [](const ModelLayer& self, Inputs in) {
    return normalised_over_batch(self, 0, in[0], kNormEpsilon);
  };
  return model.add(std::move(layer));
}

int add_conv_unit(Model& model, const std::string& name, int input, const ConvUnitShape& shape) {
  const std::int64_t fan_in = std::int64_t{shape.in} * shape.height * shape.width;
  ModelLayer layer{.name = name, .kind = "conv_norm", .inputs = {input}};
  layer.parameters = {
      {"conv.weight", draw_uniform({shape.out, shape.in, shape.height, shape.width}, fan_in)},
      {"bn.weight", at::ones({shape.out})},
      {"bn.bias", at::zeros({shape.out})}};
  layer.buffers = norm_buffers(shape.out);
  layer.forward = [shape](const ModelLayer& self, Inputs in) {
    const std::array<std::int64_t, 2> stride{shape.stride, shape.stride};
    std::array<std::int64_t, 2> padding{};
    if (shape.padded) padding = {(shape.height - 1) / 2, (shape.width - 1) / 2};
    const at::Tensor x =
        at::conv2d(in[0], self.parameters[0].tensor, at::Tensor(), stride, padding);
    return at::relu(normalised_over_batch(self, 1, x, shape.epsilon));
  };
  return model.add(std::move(layer));
}

int add_relu(Model& model, const std::string& name, int input) {
  ModelLayer layer{.name = name, .kind = "activation", .inputs = {input}};
  layer.forward = [](const ModelLayer&, Inputs in) { return at::relu(in[0]); };
  return model.add(std::move(layer));
}

int add_max_pool(Model& model, const std::string& name, int input, int kernel, int stride,
                 int padding) {
  ModelLayer layer{.name = name, .kind = "pool", .inputs = {input}};
  layer.forward = [kernel, stride, padding](const ModelLayer&, Inputs in) {
    return at::max_pool2d(in[0], kernel, stride, padding);
  };
  return model.add(std::move(layer));
}

int add_average_pool(Model& model, const std::string& name, int input, int kernel, int stride,
                     int padding) {
  ModelLayer layer{.name = name, .kind = "pool", .inputs = {input}};
  layer.forward = [kernel, stride, padding](const ModelLayer&, Inputs in) {
    return at::avg_pool2d(in[0], kernel, stride, padding);
  };
  return model.add(std::move(layer));
}

int add_mean_pool(Model& model, const std::string& name, int input) {
  ModelLayer layer{.name = name, .kind = "pool", .inputs = {input}};
  layer.forward = [](const ModelLayer&, Inputs in) {
    return at::adaptive_avg_pool2d(in[0], {1, 1});
  };
  return model.add(std::move(layer));
}

int add_linear(Model& model, const std::string& name, int input, int in, int out) {
  ModelLayer layer{.name = name, .kind = "linear", .inputs = {input}};
  layer.parameters = {{"weight", draw_uniform({out, in}, in)}, {"bias", draw_uniform({out}, in)}};
  layer.forward = [](const ModelLayer& self, Inputs inputs) {
    return at::linear(inputs[0].flatten(1), self.parameters[0].tensor, self.parameters[1].tensor);
  };
  return model.add(std::move(layer));
}

int add_sum(Model& model, const std::string& name, int a, int b) {
  ModelLayer layer{.name = name, .kind = "add", .inputs = {a, b}};
  layer.forward = [](const ModelLayer&, Inputs in) { return at::add(in[0], in[1]); };
  return model.add(std::move(layer));
}

int add_cat(Model& model, const std::string& name, const std::vector<int>& inputs) {
  ModelLayer layer{.name = name, .kind = "cat", .inputs = inputs};
  layer.forward = [](const ModelLayer&, Inputs in) {
    return at::cat(at::TensorList(in.data(), in.size()), 1);
  };
  return model.add(std::move(layer));
}

int add_cross_entropy(Model& model, int input) {
  ModelLayer layer{.name = "loss", .kind = "loss", .inputs = {input, Model::kTarget}};
  layer.forward = [](const ModelLayer&, Inputs in) {
    // One row of scores and one class each; neither line does anything to what is so already.
    const at::Tensor scores = in[0].flatten(0, -2).to(at::kFloat);
    return at::cross_entropy_loss(scores, in[1].flatten());
  };
  return model.add(std::move(layer));
}

}  // namespace lockstep::runner
