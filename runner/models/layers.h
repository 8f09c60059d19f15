#pragma once

#include <string>

#include "runner/models/model.h"

namespace lockstep::runner {

/// Functions that append one leaf layer to a model and return its index. `input` is the index of
/// the layer it reads. Parameters are drawn as PyTorch draws them, from the global CPU generator.

/// Sets that generator.
void seed_parameters(std::uint64_t seed);

struct ConvShape {
  int in = 0, out = 0, kernel = 3, stride = 1, padding = 1;
  bool bias = true;
};
int add_conv(Model& model, const std::string& name, int input, const ConvShape& shape);
/// Batch normalisation over channels, statistics of the batch, momentum 0.1.
int add_norm(Model& model, const std::string& name, int input, int channels);
int add_relu(Model& model, const std::string& name, int input);
int add_max_pool(Model& model, const std::string& name, int input, int kernel, int stride,
                 int padding = 0);
/// Mean over the whole image: (batch, channels, 1, 1).
int add_mean_pool(Model& model, const std::string& name, int input);
/// Flattens what it reads to (batch, in).
int add_linear(Model& model, const std::string& name, int input, int in, int out);
int add_sum(Model& model, const std::string& name, int a, int b);
/// Cross entropy against the target, mean over the batch; the last layer of every classifier.
int add_cross_entropy(Model& model, int input);

}  // namespace lockstep::runner
