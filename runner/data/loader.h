#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/measure/train.h"
#include "runner/models/model.h"

namespace lockstep::runner {

/// Samples drawn from a normal distribution, with random classes.
Batch random_batch(const Model& model, int batch, std::uint64_t seed, c10::Device device);

struct LoaderOptions {
  std::string data = "synthetic";  ///< or "fashion-mnist"
  std::string directory;           ///< of the files; empty: where Debian puts them
  std::uint64_t seed = 1;
  int rank = 0, workers = 1;
};

/// Batches for one worker. Synthetic ones are made once and handed out in turn: they cost no time.
/// Fashion-MNIST is read once; each epoch is shuffled anew, and worker r takes samples r, r + n,
/// ... of it, shown as three equal planes of 32x32.
class Loader {
 public:
  /// InputError for unknown data, missing or damaged files.
  Loader(const LoaderOptions& options, const Model& model, int batch, c10::Device device);
  Batch next();
  std::int64_t samples() const { return samples_; }  ///< in the data set; 0: synthetic

 private:
  void shuffle();

  LoaderOptions options_;
  int batch_;
  c10::Device device_;
  std::int64_t samples_ = 0;
  std::vector<Batch> ready_;  ///< synthetic
  std::size_t turn_ = 0;
  at::Tensor images_, labels_;  ///< bytes; int64
  std::vector<std::int64_t> order_;
  std::size_t place_ = 0;
  std::uint64_t epoch_ = 0;
};

}  // namespace lockstep::runner
