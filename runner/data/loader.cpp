#include "runner/data/loader.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "runner/data/idx.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

constexpr int kSyntheticBatches = 4;
// Mean and standard deviation of the training images, as everybody normalises them.
constexpr double kMean = 0.2860, kDeviation = 0.3530;

}  // namespace

Batch random_batch(const Model& model, int batch, std::uint64_t seed, c10::Device device) {
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  std::vector<std::int64_t> shape = model.input_shape();
  shape.insert(shape.begin(), batch);
  return {.input = at::randn(shape, generator).to(device),
          .target = at::randint(model.classes(), {batch}, generator, at::kLong).to(device)};
}

Loader::Loader(const LoaderOptions& options, const Model& model, int batch, c10::Device device)
    : options_(options), batch_(batch), device_(device) {
  if (options.data == "synthetic") {
    for (int i = 0; i < kSyntheticBatches; ++i) {
      const auto seed =
          options.seed + static_cast<std::uint64_t>(i * options.workers + options.rank);
      ready_.push_back(random_batch(model, batch, seed, device));
    }
    return;
  }
  if (options.data != "fashion-mnist") {
    throw InputError({}, "data", fmt::format("there is no data \"{}\"", options.data),
                     "one of synthetic, fashion-mnist");
  }
  LabelledImages read = read_fashion_mnist(options.directory);
  samples_ = read.labels.sizes[0];
  if (samples_ < std::int64_t{batch} * options.workers) {
    throw InputError({}, "batch", fmt::format("{} samples are too few for a step", samples_));
  }
  images_ = at::from_blob(read.images.data.data(), {samples_, 1, 28, 28}, at::kByte).clone();
  labels_ = at::from_blob(read.labels.data.data(), {samples_}, at::kByte).to(at::kLong);
  shuffle();
}

void Loader::shuffle() {
  order_.resize(static_cast<std::size_t>(samples_));
  std::iota(order_.begin(), order_.end(), 0);
  std::mt19937_64 random(options_.seed + epoch_++);
  std::ranges::shuffle(order_, random);
  place_ = 0;
}

Batch Loader::next() {
  if (!ready_.empty()) return ready_[turn_++ % ready_.size()];
  const auto workers = static_cast<std::size_t>(options_.workers);
  const auto wanted = static_cast<std::size_t>(batch_);
  if (place_ + wanted * workers > order_.size()) shuffle();
  std::vector<std::int64_t> mine;
  for (std::size_t i = 0; i < wanted; ++i) {
    mine.push_back(order_[place_ + i * workers + static_cast<std::size_t>(options_.rank)]);
  }
  place_ += wanted * workers;
  const at::Tensor index = at::tensor(mine);
  const at::Tensor grey =
      images_.index_select(0, index).to(at::kFloat).div_(255.0).sub_(kMean).div_(kDeviation);
  const at::Tensor image = at::constant_pad_nd(grey, {2, 2, 2, 2}, -kMean / kDeviation)
                               .expand({batch_, 3, 32, 32})
                               .contiguous();
  return {.input = image.to(device_), .target = labels_.index_select(0, index).to(device_)};
}

}  // namespace lockstep::runner
