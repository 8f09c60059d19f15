#include <ATen/ops/add.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <string>

#include "runner/models/layers.h"
#include "runner/models/zoo.h"

// Radford et al. 2019, with the names of its released weights. Every layer between the embedding
// and the loss takes and gives (batch, positions, width).
namespace lockstep::runner {

namespace {

struct Gpt2Shape {
  int vocabulary = 50257;
  int blocks = 12, heads = 12, width = 768;
  int sequence = 512;    ///< positions of a sample
  int positions = 1024;  ///< that have been learned
  double dropout = 0;
};

constexpr double kDeviation = 0.02;  ///< of weights as they are drawn, and of embeddings

at::Tensor draw_normal(at::IntArrayRef shape, double deviation) {
  return at::empty(shape).normal_(0, deviation, parameter_draws());
}

int add_embedding(Model& model, const std::string& name, int words, int width) {
  ModelLayer layer{.name = name, .kind = "embedding", .inputs = {Model::kInput}};
  layer.parameters = {{"weight", draw_normal({words, width}, kDeviation)}};
  layer.forward = [](const ModelLayer& self, ModelLayer::Inputs in) {
    return at::embedding(self.parameters[0].tensor, in[0]);
  };
  return model.add(std::move(layer));
}

/// Adds to each position what has been learned for it.
int add_positions(Model& model, const std::string& name, int input, int positions, int width) {
  ModelLayer layer{.name = name, .kind = "embedding", .inputs = {input}};
  layer.parameters = {{"weight", draw_normal({positions, width}, kDeviation)}};
  layer.forward = [](const ModelLayer& self, ModelLayer::Inputs in) {
    return at::add(in[0], self.parameters[0].tensor.narrow(0, 0, in[0].size(1)));
  };
  return model.add(std::move(layer));
}

int add_layer_norm(Model& model, const std::string& name, int input, int width) {
  ModelLayer layer{.name = name, .kind = "norm", .inputs = {input}};
  layer.parameters = {{"weight", at::ones({width})}, {"bias", at::zeros({width})}};
  layer.forward = [width](const ModelLayer& self, ModelLayer::Inputs in) {
    return at::layer_norm(in[0], {width}, self.parameters[0].tensor, self.parameters[1].tensor);
  };
  return model.add(std::move(layer));
}

/// The same linear map at every position.
int add_projection(Model& model, const std::string& name, int input, int in, int out,
                   double deviation = kDeviation) {
  ModelLayer layer{.name = name, .kind = "linear", .inputs = {input}};
  layer.parameters = {{"weight", draw_normal({out, in}, deviation)}, {"bias", at::zeros({out})}};
  layer.forward = [](const ModelLayer& self, ModelLayer::Inputs inputs) {
    return at::linear(inputs[0], self.parameters[0].tensor, self.parameters[1].tensor);
  };
  return model.add(std::move(layer));
}

/// Causal attention. Reads queries, keys and values behind each other: (batch, positions, 3 width).
int add_attention(Model& model, const std::string& name, int input, int heads, double dropout) {
  ModelLayer layer{.name = name, .kind = "attention", .inputs = {input}};
  layer.dropout = dropout;
  layer.forward = [heads](const ModelLayer& self, ModelLayer::Inputs in) {
    const std::int64_t batch = in[0].size(0), positions = in[0].size(1), width = in[0].size(2) / 3;
    const auto by_head = [&](const at::Tensor& part) {
      return part.view({batch, positions, heads, width / heads}).transpose(1, 2);
    };
    const std::vector<at::Tensor> parts = in[0].split(width, 2);
    const at::Tensor mixed = at::scaled_dot_product_attention(by_head(parts[0]), by_head(parts[1]),
                                                              by_head(parts[2]), {}, self.dropout,
                                                              /*is_causal=*/true);
    return mixed.transpose(1, 2).reshape({batch, positions, width});
  };
  return model.add(std::move(layer));
}

int add_gelu(Model& model, const std::string& name, int input) {
  ModelLayer layer{.name = name, .kind = "activation", .inputs = {input}};
  layer.forward = [](const ModelLayer&, ModelLayer::Inputs in) { return at::gelu(in[0], "tanh"); };
  return model.add(std::move(layer));
}

/// No layer where nothing is dropped.
int add_dropout(Model& model, const std::string& name, int input, double dropout) {
  if (dropout == 0) return input;
  ModelLayer layer{.name = name, .kind = "dropout", .inputs = {input}};
  layer.dropout = dropout;
  layer.forward = [](const ModelLayer& self, ModelLayer::Inputs in) {
    return at::dropout(in[0], self.dropout, /*train=*/true);
  };
  return model.add(std::move(layer));
}

/// Scores of all words, by the weights of their embedding.
int add_tied_scores(Model& model, const std::string& name, int input, int embedding) {
  ModelLayer layer{.name = name, .kind = "linear", .inputs = {input}};
  layer.ties = embedding;
  layer.forward = [](const ModelLayer& self, ModelLayer::Inputs in) {
    return at::linear(in[0], self.tied);
  };
  return model.add(std::move(layer));
}

int add_transformer_block(Model& model, const std::string& name, int input,
                          const Gpt2Shape& shape) {
  const int width = shape.width;
  // Sums grow with the number of their terms: two a block.
  const double into_sum = kDeviation / std::sqrt(2.0 * shape.blocks);
  int x = add_layer_norm(model, name + "ln_1", input, width);
  x = add_projection(model, name + "attn.c_attn", x, width, 3 * width);
  x = add_attention(model, name + "attn.attention", x, shape.heads, shape.dropout);
  x = add_projection(model, name + "attn.c_proj", x, width, width, into_sum);
  x = add_dropout(model, name + "attn.resid_dropout", x, shape.dropout);
  const int middle = add_sum(model, name + "add_1", input, x);
  x = add_layer_norm(model, name + "ln_2", middle, width);
  x = add_projection(model, name + "mlp.c_fc", x, width, 4 * width);
  x = add_gelu(model, name + "mlp.act", x);
  x = add_projection(model, name + "mlp.c_proj", x, 4 * width, width, into_sum);
  x = add_dropout(model, name + "mlp.dropout", x, shape.dropout);
  return add_sum(model, name + "add_2", middle, x);
}

Model make_gpt2(const std::string& name, const Gpt2Shape& shape) {
  Model model(name, {shape.sequence}, shape.vocabulary, SampleKind::tokens);
  const int words = add_embedding(model, "wte", shape.vocabulary, shape.width);
  int x = add_positions(model, "wpe", words, shape.positions, shape.width);
  x = add_dropout(model, "drop", x, shape.dropout);
  for (int i = 0; i < shape.blocks; ++i) {
    x = add_transformer_block(model, "h." + std::to_string(i) + ".", x, shape);
  }
  x = add_layer_norm(model, "ln_f", x, shape.width);
  x = add_tied_scores(model, "lm_head", x, words);
  add_cross_entropy(model, x);
  return model;
}

constexpr double kUsualDropout = 0.1;

constexpr Gpt2Shape kSmallGpt{
    .vocabulary = 1000, .blocks = 2, .heads = 4, .width = 64, .sequence = 32, .positions = 64};

Gpt2Shape dropping(Gpt2Shape shape) {
  shape.dropout = kUsualDropout;
  return shape;
}

}  // namespace

Model gpt2_small() {
  return make_gpt2("gpt2_small", {});
}

Model gpt2_small_dropout() {
  return make_gpt2("gpt2_small_dropout", dropping({}));
}

Model small_gpt() {
  return make_gpt2("small_gpt", kSmallGpt);
}

Model small_gpt_dropout() {
  return make_gpt2("small_gpt_dropout", dropping(kSmallGpt));
}

}  // namespace lockstep::runner
