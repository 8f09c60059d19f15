#pragma once

#include <ATen/core/Generator.h>

#include <array>
#include <string>
#include <vector>

#include "runner/models/model.h"

namespace lockstep::runner {

/// Functions that append one leaf layer to a model and return its index. `input` is the index of
/// the layer it reads. Parameters are drawn as PyTorch draws them, from parameter_draws().

/// A CPU generator of the calling thread. Several threads can make models at a time, and from one
/// generator each would draw numbers that the others then miss.
at::Generator& parameter_draws();
/// Sets that generator, and PyTorch's own, from which dropout draws.
void seed_parameters(std::uint64_t seed);

struct ConvShape {
  int in = 0, out = 0, kernel = 3, stride = 1, padding = 1;
  bool bias = true;
};
int add_conv(Model& model, const std::string& name, int input, const ConvShape& shape);
/// Batch normalisation over channels, statistics of the batch, momentum 0.1.
int add_norm(Model& model, const std::string& name, int input, int channels);
/// A convolution of height x width without bias, batch normalisation over its channels and ReLU, as
/// one layer: networks of many small ones have fewer rows to measure and to store.
struct ConvUnitShape {
  int in = 0, out = 0, height = 1, width = 1, stride = 1;
  bool padded = true;     ///< with stride 1 the image keeps its size
  double epsilon = 1e-5;  ///< of the normalisation
};
int add_conv_unit(Model& model, const std::string& name, int input, const ConvUnitShape& shape);
int add_relu(Model& model, const std::string& name, int input);
int add_max_pool(Model& model, const std::string& name, int input, int kernel, int stride,
                 int padding = 0);
/// Mean over a window; padding counts as zeros.
int add_average_pool(Model& model, const std::string& name, int input, int kernel, int stride,
                     int padding);
/// Mean over the whole image: (batch, channels, 1, 1).
int add_mean_pool(Model& model, const std::string& name, int input);
/// Flattens what it reads to (batch, in).
int add_linear(Model& model, const std::string& name, int input, int in, int out);
/// Images to the 2048 features of a ResNet of bottlenecks, (batch, 2048, 1, 1).
int add_bottleneck_features(Model& model, const std::string& prefix, int input,
                            const std::array<int, 4>& depths);
/// What PyTorch draws weights and biases from by default: uniform within 1/sqrt(fan in).
at::Tensor draw_uniform(at::IntArrayRef shape, std::int64_t fan_in);
int add_sum(Model& model, const std::string& name, int a, int b);
/// Puts the channels of several images of one size behind each other.
int add_cat(Model& model, const std::string& name, const std::vector<int>& inputs);
/// Cross entropy against the target, in fp32, mean over the batch and, where there are several,
/// over the positions of a sample; the last layer of every network.
int add_cross_entropy(Model& model, int input);

}  // namespace lockstep::runner
