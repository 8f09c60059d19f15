#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::runner {

/// Where Debian's package dataset-fashion-mnist puts its files.
inline constexpr const char* kFashionMnistDirectory = "/usr/share/datasets/fashion-mnist";

/// An array of bytes as the MNIST family stores it (IDX): big-endian sizes, then the data.
struct IdxArray {
  std::vector<int> sizes;  ///< (images, rows, columns), or (labels)
  std::vector<std::uint8_t> data;
};

/// Reads a gzip or plain IDX file of unsigned bytes with that many dimensions. InputError where it
/// is missing, truncated, longer than its header says, or of another type.
IdxArray read_idx(const std::string& file, std::size_t dimensions);

struct LabelledImages {
  IdxArray images, labels;
};

/// The 60,000 training images; checks that there is a label below 10 for each 28x28 image.
LabelledImages read_fashion_mnist(const std::string& directory);

}  // namespace lockstep::runner
