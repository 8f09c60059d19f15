#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runner/measure/train.h"

namespace lockstep::runner {

/// Labelled images for networks that take three planes of 32x32.
struct Dataset {
  std::vector<std::uint8_t> images, labels;
  int planes = 3, side = 32;  ///< as stored: one plane is shown three times, small ones are framed
  std::array<std::array<float, 256>, 3> values{};  ///< of a pixel as the network gets it, by plane

  std::int64_t samples() const { return static_cast<std::int64_t>(labels.size()); }
};

/// "fashion-mnist" or "cifar10"; `directory` may be empty where the system knows a place.
/// InputError for missing or damaged files.
Dataset read_dataset(const std::string& name, const std::string& directory);

/// The samples of these indices, in host memory. Runs on the calling thread alone.
Batch make_batch(const Dataset& dataset, std::span<const std::int64_t> indices);

}  // namespace lockstep::runner
