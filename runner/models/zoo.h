#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "runner/models/model.h"

namespace lockstep::runner {

/// Names that make_model takes, in the order they are shown: "small_cnn", "vgg11", ...
std::vector<std::string> model_names();

/// The name of the variant without batch normalisation, or with dropout. InputError where there is
/// none.
std::string without_batch_norm(const std::string& name);
std::string with_dropout(const std::string& name);

/// A network with freshly drawn parameters: the same seed gives the same ones everywhere.
/// Throws InputError with the names there are, for another name.
Model make_model(const std::string& name, c10::Device device, std::uint64_t seed);

/// The networks, one function each; `make_model` finishes them.
Model small_cnn();  ///< CIFAR: three convolutions and a linear layer
Model vgg11();      ///< CIFAR, with batch normalisation and Linear(512, 10): 9,231,114 parameters
Model resnet18_cifar();  ///< 3x3 stem with stride 1, no max pool: 11,173,962 parameters
/// The same without batch normalisation; convolutions have biases instead: 11,169,162 parameters
Model resnet18_cifar_no_batchnorm();
Model resnet50();   ///< ImageNet, 224x224: 25,557,032 parameters
Model resnet101();  ///< the same with more blocks in its third stage: 44,549,160 parameters
Model resnet152();  ///< and in its second: 60,192,808 parameters
Model vgg16();      ///< ImageNet, without batch normalisation and dropout: 138,357,544 parameters
/// ImageNet, 299x299, without auxiliary classifier and dropout: 23,834,568 parameters
Model inception_v3();
/// 512 of 1024 positions, 50,257 words, output tied to the embedding: 124,439,808 parameters
Model gpt2_small();
Model gpt2_small_dropout();  ///< the same with dropout 0.1, as it was published
/// Two blocks of width 64, 32 of 64 positions, 1000 words: for tests and for cores
Model small_gpt();
Model small_gpt_dropout();  ///< the same with dropout 0.1
/// Captions of 20 of 9,956 words for images of 224x224: 9,758,180 trained parameters behind
/// 58,143,808 frozen ones of ResNet-152
Model captioner();
/// Captions of 8 of 1000 words for images of 32x32, four bottlenecks: for tests and for cores
Model small_captioner();

}  // namespace lockstep::runner
