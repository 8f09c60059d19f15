#include <ATen/ops/_cudnn_rnn_flatten_weight.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <array>
#include <string>

#include "runner/models/layers.h"
#include "runner/models/zoo.h"

// Vinyals et al. 2015 as the PyTorch tutorial on image captioning has it, which Choi 2019 trained:
// a ResNet without its classifier, whose parameters are frozen while its norms take the statistics
// of the batch, a linear map and a norm that are trained, and an LSTM that is shown the image as
// its first word. The tutorial starts from learned parameters, this from drawn ones; captions here
// have one length, so that nothing is packed.
namespace lockstep::runner {

namespace {

struct CaptionerShape {
  std::array<int, 4> depths{3, 8, 36, 3};
  int side = 224;  ///< of an image, in pixels
  int features = 2048, embedded = 256, hidden = 512;
  int vocabulary = 9956;  ///< words that COCO 2014 has four times or more
  int words = 20;         ///< of a caption

  int pixels() const { return 3 * side * side; }
};

/// The image of a sample: (batch, 3, side, side).
int add_image(Model& model, const CaptionerShape& shape) {
  ModelLayer layer{.name = "image", .kind = "slice", .inputs = {Model::kInput}};
  layer.forward = [shape](const ModelLayer&, ModelLayer::Inputs in) {
    const at::Tensor pixels = in[0].narrow(1, 0, shape.pixels()).contiguous();
    return pixels.view({-1, 3, shape.side, shape.side});
  };
  return model.add(std::move(layer));
}

/// Of each word of the caption but the last, which none is predicted from: (batch, words - 1,
/// embedded).
int add_embedding(Model& model, const CaptionerShape& shape) {
  ModelLayer layer{.name = "decoder.embed", .kind = "embedding", .inputs = {Model::kInput}};
  at::Tensor weight = at::empty({shape.vocabulary, shape.embedded});
  weight.normal_(0, 1, parameter_draws());  // PyTorch's default
  layer.parameters = {{"weight", weight}};
  layer.forward = [shape](const ModelLayer& self, ModelLayer::Inputs in) {
    const at::Tensor words = in[0].narrow(1, shape.pixels(), shape.words - 1).to(at::kLong);
    return at::embedding(self.parameters[0].tensor, words);
  };
  return model.add(std::move(layer));
}

/// The image, then the words: (batch, words, embedded), in fp32.
int add_sequence(Model& model, int image, int words) {
  ModelLayer layer{.name = "decoder.cat", .kind = "cat", .inputs = {image, words}};
  layer.forward = [](const ModelLayer&, ModelLayer::Inputs in) {
    const std::array parts{in[0].to(at::kFloat).unsqueeze(1), in[1].to(at::kFloat)};
    return at::cat(parts, 1);
  };
  return model.add(std::move(layer));
}

/// cuDNN wants the parameters behind each other, and would else copy them in every step.
void flatten_for_cudnn(ModelLayer& layer, const CaptionerShape& shape) {
  constexpr std::int64_t kLstm = 2;  // cuDNN's number of the kind
  if (!layer.parameters.front().tensor.is_cuda()) return;
  std::vector<at::Tensor> weights;
  for (const NamedTensor& parameter : layer.parameters) weights.push_back(parameter.tensor);
  at::_cudnn_rnn_flatten_weight(weights, /*weight_stride0=*/4, shape.embedded, kLstm, shape.hidden,
                                /*proj_size=*/0, /*num_layers=*/1, /*batch_first=*/true,
                                /*bidirectional=*/false);
}

/// One layer, (batch, words, embedded) to (batch, words, hidden), in fp32 whatever the rest has:
/// autocast knows recurrent networks in fp16 only.
int add_lstm(Model& model, int input, const CaptionerShape& shape) {
  ModelLayer layer{.name = "decoder.lstm", .kind = "recurrent", .inputs = {input}};
  const int gates = 4 * shape.hidden;
  layer.parameters = {{"weight_ih_l0", draw_uniform({gates, shape.embedded}, shape.hidden)},
                      {"weight_hh_l0", draw_uniform({gates, shape.hidden}, shape.hidden)},
                      {"bias_ih_l0", draw_uniform({gates}, shape.hidden)},
                      {"bias_hh_l0", draw_uniform({gates}, shape.hidden)}};
  layer.settle = [shape](ModelLayer& self) { flatten_for_cudnn(self, shape); };
  layer.forward = [shape](const ModelLayer& self, ModelLayer::Inputs in) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const at::Tensor zero = at::zeros({1, in[0].size(0), shape.hidden}, in[0].options());
    std::vector<at::Tensor> weights;
    for (const NamedTensor& parameter : self.parameters) weights.push_back(parameter.tensor);
    return std::get<0>(at::lstm(in[0], {zero, zero}, weights, /*has_biases=*/true, /*num_layers=*/1,
                                /*dropout=*/0.0, /*train=*/true, /*bidirectional=*/false,
                                /*batch_first=*/true));
  };
  return model.add(std::move(layer));
}

/// Scores of all words at every place of the caption.
int add_scores(Model& model, int input, const CaptionerShape& shape) {
  ModelLayer layer{.name = "decoder.linear", .kind = "linear", .inputs = {input}};
  layer.parameters = {{"weight", draw_uniform({shape.vocabulary, shape.hidden}, shape.hidden)},
                      {"bias", draw_uniform({shape.vocabulary}, shape.hidden)}};
  layer.forward = [](const ModelLayer& self, ModelLayer::Inputs in) {
    return at::linear(in[0], self.parameters[0].tensor, self.parameters[1].tensor);
  };
  return model.add(std::move(layer));
}

Model make_captioner(const std::string& name, const CaptionerShape& shape) {
  Model model(name, {shape.pixels() + shape.words}, shape.vocabulary, SampleKind::captioned_image);
  model.set_caption_words(shape.words);
  int x = add_image(model, shape);
  x = add_bottleneck_features(model, "encoder.resnet.", x, shape.depths);
  model.freeze();
  x = add_linear(model, "encoder.linear", x, shape.features, shape.embedded);
  const int image = add_norm(model, "encoder.bn", x, shape.embedded);
  x = add_sequence(model, image, add_embedding(model, shape));
  x = add_lstm(model, x, shape);
  add_cross_entropy(model, add_scores(model, x, shape));
  return model;
}

}  // namespace

Model captioner() {
  return make_captioner("captioner", {});
}

Model small_captioner() {
  return make_captioner("small_captioner", {.depths = {1, 1, 1, 1},
                                            .side = 32,
                                            .embedded = 32,
                                            .hidden = 64,
                                            .vocabulary = 1000,
                                            .words = 8});
}

}  // namespace lockstep::runner
