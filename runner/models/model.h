#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runner/measure/recorder.h"

namespace lockstep::runner {

struct NamedTensor {
  std::string name;  ///< within its layer: "weight", "running_mean"
  at::Tensor tensor;
};

/// A leaf layer: about one autograd node, and one row of a profile.
struct ModelLayer {
  using Inputs = std::span<const at::Tensor>;
  using Forward = std::function<at::Tensor(const ModelLayer& layer, Inputs inputs)>;

  std::string name;  ///< "features.0"
  std::string kind;  ///< "conv", "norm", "conv_norm", "linear", "activation", "pool", "add", "cat",
                     ///< "embedding", "attention", "dropout", "slice", "recurrent", "loss"
  std::vector<int> inputs;  ///< earlier layers, or Model::kInput, or Model::kTarget
  std::vector<NamedTensor> parameters{};
  std::vector<NamedTensor> buffers{};
  Forward forward{};
  std::int64_t output_bytes = 0;  ///< of the last forward
  /// An earlier layer whose first parameter this one reads as well, and that parameter once the
  /// model is finished. It is listed there only: its gradient is the sum over both.
  std::optional<int> ties{};
  at::Tensor tied{};
  double dropout = 0;   ///< probability with which it drops a value
  bool frozen = false;  ///< its parameters are not trained: they have no gradients
  /// Called once everything is on its device, where that wants its parameters in an order.
  std::function<void(ModelLayer& layer)> settle{};
};

/// What one sample is, and what its target.
enum class SampleKind {
  image,   ///< floats; one class
  tokens,  ///< a row of int64 words, each below Model::classes(); for every word the next one
  captioned_image,  ///< floats: 3 planes of an image, then the numbers of the words of its caption,
                    ///< each below Model::classes(), which floats hold exactly; these words
};

/// A network as the list of its leaf layers in forward order, each naming the layers it reads;
/// the last one is the loss. Built by the functions in layers.h, used by everything that trains.
class Model {
 public:
  static constexpr int kInput = -1;
  static constexpr int kTarget = -2;

  Model(std::string name, std::vector<std::int64_t> input_shape, int classes,
        SampleKind samples = SampleKind::image);

  /// Appends a layer; returns its index.
  int add(ModelLayer layer);
  /// Freezes the layers that have been added.
  void freeze();
  /// Call once after the last layer. Moves everything to `device` and lays the buffers out as
  /// views of one flat tensor per type, so that broadcasting them takes no copies.
  void finish(c10::Device device);
  /// From now on no layer drops anything: runs can be compared value by value.
  void drop_nothing();

  /// Once finished: the same on another device (or the same one), with parameters and buffers of
  /// its own.
  Model replica(c10::Device device) const;

  const std::string& name() const { return name_; }
  const std::vector<std::int64_t>& input_shape() const { return input_shape_; }  ///< of one sample
  int classes() const { return classes_; }
  SampleKind samples() const { return samples_; }
  std::int64_t input_bytes() const;  ///< of one sample, without its target
  const std::vector<ModelLayer>& layers() const { return layers_; }
  int caption_words() const { return caption_words_; }  ///< of a captioned image
  void set_caption_words(int words) { caption_words_ = words; }
  /// All that are trained, in forward order of their layers.
  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  std::int64_t parameter_count() const;  ///< the same
  /// At most two tensors: all floating-point buffers, all counters.
  const std::vector<at::Tensor>& flat_buffers() const { return flat_buffers_; }

  /// Mean loss of a batch (over every position of tokens), training mode. Marks the end of each
  /// layer's forward, and arranges that backward marks the beginning of each layer's backward, if
  /// there is a recorder (which must live until backward is over).
  at::Tensor loss(const at::Tensor& input, const at::Tensor& target, Recorder* recorder = nullptr);
  /// The same in two: what the last layer reads beside the target, and that layer alone.
  at::Tensor output(const at::Tensor& input, Recorder* recorder = nullptr);
  at::Tensor loss_of(const at::Tensor& output, const at::Tensor& target,
                     Recorder* recorder = nullptr);

 private:
  void mark_layer(int index, const at::Tensor& output, Recorder* recorder);

  std::string name_;
  std::vector<std::int64_t> input_shape_;
  int classes_;
  SampleKind samples_;
  int caption_words_ = 0;
  std::vector<ModelLayer> layers_;
  std::vector<int> last_reader_;  ///< by layer: outputs are let go when nobody reads them any more
  std::vector<at::Tensor> parameters_, flat_buffers_;
};

}  // namespace lockstep::runner
