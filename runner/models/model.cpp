#include "runner/models/model.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>

#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

/// Moves the buffers of one type into one flat tensor, and makes them views of it.
at::Tensor flatten(const std::vector<NamedTensor*>& buffers, c10::Device device) {
  std::vector<at::Tensor> parts;
  for (const NamedTensor* buffer : buffers) parts.push_back(buffer->tensor.reshape({-1}));
  at::Tensor flat = at::cat(parts).to(device);
  std::int64_t offset = 0;
  for (NamedTensor* buffer : buffers) {
    const auto shape = buffer->tensor.sizes().vec();
    const std::int64_t count = buffer->tensor.numel();
    buffer->tensor = flat.narrow(0, offset, count).view(shape);
    offset += count;
  }
  return flat;
}

}  // namespace

Model::Model(std::string name, std::vector<std::int64_t> input_shape, int classes,
             SampleKind samples)
    : name_(std::move(name)),
      input_shape_(std::move(input_shape)),
      classes_(classes),
      samples_(samples) {}

int Model::add(ModelLayer layer) {
  const int index = static_cast<int>(layers_.size());
  for (const int input : layer.inputs) {
    LOCKSTEP_ASSERT(input < index && input >= kTarget, "a layer reads earlier layers");
  }
  LOCKSTEP_ASSERT(!layer.ties || (*layer.ties >= 0 && *layer.ties < index),
                  "a layer is tied to an earlier one");
  layers_.push_back(std::move(layer));
  return index;
}

void Model::freeze() {
  for (ModelLayer& layer : layers_) layer.frozen = true;
}

void Model::finish(c10::Device device) {
  LOCKSTEP_ASSERT(!layers_.empty() && parameters_.empty(), "a model is finished once");
  last_reader_.assign(layers_.size(), static_cast<int>(layers_.size()));
  std::vector<NamedTensor*> floats, counters;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    for (const int input : layers_[i].inputs) {
      if (input >= 0) last_reader_[static_cast<std::size_t>(input)] = static_cast<int>(i);
    }
    for (NamedTensor& parameter : layers_[i].parameters) {
      parameter.tensor = parameter.tensor.detach().to(device);
    }
    if (layers_[i].settle) layers_[i].settle(layers_[i]);
    for (NamedTensor& parameter : layers_[i].parameters) {
      if (layers_[i].frozen) continue;
      parameter.tensor.requires_grad_(true);
      parameters_.push_back(parameter.tensor);
    }
    if (const auto owner = layers_[i].ties) {
      layers_[i].tied = layers_[static_cast<std::size_t>(*owner)].parameters.at(0).tensor;
    }
    for (NamedTensor& buffer : layers_[i].buffers) {
      (buffer.tensor.is_floating_point() ? floats : counters).push_back(&buffer);
    }
  }
  for (const auto& group : {floats, counters}) {
    if (!group.empty()) flat_buffers_.push_back(flatten(group, device));
  }
}

Model Model::replica(c10::Device device) const {
  Model copy = *this;
  copy.parameters_.clear();
  copy.flat_buffers_.clear();
  for (ModelLayer& layer : copy.layers_) {
    for (NamedTensor& parameter : layer.parameters) {
      parameter.tensor = parameter.tensor.detach().clone();
    }
  }
  copy.finish(device);
  return copy;
}

void Model::drop_nothing() {
  for (ModelLayer& layer : layers_) layer.dropout = 0;
}

std::int64_t Model::input_bytes() const {
  const std::size_t value = samples_ == SampleKind::tokens ? sizeof(std::int64_t) : sizeof(float);
  auto bytes = static_cast<std::int64_t>(value);
  for (const std::int64_t size : input_shape_) bytes *= size;
  return bytes;
}

std::int64_t Model::parameter_count() const {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : parameters_) count += parameter.numel();
  return count;
}

at::Tensor Model::output(const at::Tensor& input, Recorder* recorder) {
  LOCKSTEP_ASSERT(last_reader_.size() == layers_.size(), "finish() comes before the first step");
  std::vector<at::Tensor> outputs(layers_.size());
  std::vector<at::Tensor> arguments;
  if (recorder != nullptr) recorder->mark(Mark::forward_begin, -1);
  for (std::size_t i = 0; i + 1 < layers_.size(); ++i) {
    const ModelLayer& layer = layers_[i];
    const int index = static_cast<int>(i);
    arguments.clear();
    for (const int from : layer.inputs) {
      LOCKSTEP_ASSERT(from != kTarget, "nothing but the loss reads the target");
      arguments.push_back(from == kInput ? input : outputs[static_cast<std::size_t>(from)]);
    }
    outputs[i] = layer.forward(layer, arguments);
    mark_layer(index, outputs[i], recorder);
    for (const int from : layer.inputs) {
      if (from >= 0 && last_reader_[static_cast<std::size_t>(from)] == index) {
        outputs[static_cast<std::size_t>(from)].reset();
      }
    }
  }
  return outputs[static_cast<std::size_t>(layers_.back().inputs.front())];
}

at::Tensor Model::loss_of(const at::Tensor& output, const at::Tensor& target, Recorder* recorder) {
  const ModelLayer& layer = layers_.back();
  LOCKSTEP_ASSERT(layer.inputs.size() == 2 && layer.inputs.front() >= 0, "a loss has one input");
  const at::Tensor loss = layer.forward(layer, std::array{output, target});
  mark_layer(static_cast<int>(layers_.size()) - 1, loss, recorder);
  return loss;
}

at::Tensor Model::loss(const at::Tensor& input, const at::Tensor& target, Recorder* recorder) {
  return loss_of(output(input, recorder), target, recorder);
}

void Model::mark_layer(int index, const at::Tensor& output, Recorder* recorder) {
  if (recorder == nullptr || !recorder->layers()) return;
  recorder->mark(Mark::forward_end, index);
  layers_[static_cast<std::size_t>(index)].output_bytes =
      static_cast<std::int64_t>(output.nbytes());
  if (!output.requires_grad()) return;  // nothing before it is trained
  output.register_hook(
      [recorder, index](const at::Tensor&) { recorder->mark(Mark::backward_begin, index); });
}

}  // namespace lockstep::runner
