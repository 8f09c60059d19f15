#include "runner/data/dataset.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>

#include "runner/data/cifar10.h"
#include "runner/data/idx.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

constexpr int kPlanes = 3, kSide = 32;

/// Mean and standard deviation of the training images, as everybody normalises them.
struct Moments {
  double mean = 0, deviation = 1;
};
constexpr std::array<Moments, kPlanes> kFashion{Moments{0.2860, 0.3530}, Moments{0.2860, 0.3530},
                                                Moments{0.2860, 0.3530}};
constexpr std::array<Moments, kPlanes> kCifar{Moments{0.4914, 0.2470}, Moments{0.4822, 0.2435},
                                              Moments{0.4465, 0.2616}};

Dataset from(LabelledImages read, int planes, int side,
             const std::array<Moments, kPlanes>& moments) {
  Dataset dataset{.images = std::move(read.images.data),
                  .labels = std::move(read.labels.data),
                  .planes = planes,
                  .side = side};
  for (std::size_t plane = 0; plane < kPlanes; ++plane) {
    for (std::size_t pixel = 0; pixel < 256; ++pixel) {
      const double share = static_cast<double>(pixel) / 255;
      dataset.values[plane][pixel] =
          static_cast<float>((share - moments[plane].mean) / moments[plane].deviation);
    }
  }
  return dataset;
}

/// One plane in the middle of a frame of black.
void show(const std::uint8_t* pixels, int side, const std::array<float, 256>& values, float* to) {
  const int frame = (kSide - side) / 2;
  std::fill_n(to, kSide * kSide, values[0]);
  for (int row = 0; row < side; ++row) {
    float* line = to + (row + frame) * kSide + frame;
    for (int column = 0; column < side; ++column) line[column] = values[*pixels++];
  }
}

}  // namespace

Dataset read_dataset(const std::string& name, const std::string& directory) {
  if (name == "fashion-mnist") return from(read_fashion_mnist(directory), 1, 28, kFashion);
  if (name == "cifar10") return from(read_cifar10(directory), kPlanes, kSide, kCifar);
  throw InputError({}, "data", fmt::format("there is no data \"{}\"", name),
                   "one of synthetic, fashion-mnist, cifar10");
}

Batch make_batch(const Dataset& dataset, std::span<const std::int64_t> indices) {
  const auto count = static_cast<std::int64_t>(indices.size());
  const Batch batch{.input = at::empty({count, kPlanes, kSide, kSide}),
                    .target = at::empty({count}, at::kLong)};
  auto* input = batch.input.mutable_data_ptr<float>();
  auto* target = batch.target.mutable_data_ptr<std::int64_t>();
  const std::int64_t plane_bytes = std::int64_t{dataset.side} * dataset.side;
  for (const std::int64_t index : indices) {
    const std::uint8_t* image = dataset.images.data() + index * plane_bytes * dataset.planes;
    for (int plane = 0; plane < kPlanes; ++plane) {
      const std::uint8_t* pixels = image + (dataset.planes == 1 ? 0 : plane) * plane_bytes;
      show(pixels, dataset.side, dataset.values[static_cast<std::size_t>(plane)], input);
      input += kSide * kSide;
    }
    *target++ = dataset.labels[static_cast<std::size_t>(index)];
  }
  return batch;
}

}  // namespace lockstep::runner
