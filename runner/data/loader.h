#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runner/data/dataset.h"
#include "runner/data/prefetch.h"
#include "runner/measure/train.h"
#include "runner/models/model.h"

namespace lockstep::runner {

/// Samples drawn from a normal distribution, with random classes or captions; or random words.
/// Draws are the same on all devices; batches above 128 MiB of images repeat samples on GPUs, since
/// the host would draw them for seconds.
Batch random_batch(const Model& model, int batch, std::uint64_t seed, c10::Device device);

struct LoaderOptions {
  std::string data = "synthetic";  ///< or a name that read_dataset takes
  std::string directory{};         ///< of the files; empty: where Debian puts them
  std::uint64_t seed = 1;
  int rank = 0, workers = 1;
  int threads = 0;  ///< that load ahead; 0: next() loads
};

/// Which samples a worker takes: each epoch is shuffled anew, alike on all workers, and worker r
/// takes r, r + n, ... of it. What is left of an epoch below a whole step is dropped.
class Sampler {
 public:
  Sampler(std::int64_t samples, int batch, const LoaderOptions& options);
  std::vector<std::int64_t> next();

 private:
  void shuffle();

  std::size_t batch_, rank_, workers_;
  std::uint64_t seed_, epoch_ = 0;
  std::vector<std::int64_t> order_;
  std::size_t place_ = 0;
};

/// InputError where the model takes other images, or an epoch holds no step.
void check_fits(const Model& model, const Dataset& dataset, const LoaderOptions& options,
                int batch);

/// Batches for one worker. Synthetic ones are made once and handed out in turn: they cost no time.
class Loader {
 public:
  /// InputError for unknown data, missing or damaged files, and where the model takes other images.
  Loader(const LoaderOptions& options, const Model& model, int batch, c10::Device device);
  Loader(const Loader&) = delete;  // its threads refer to it
  Loader& operator=(const Loader&) = delete;
  Batch next();
  std::int64_t samples() const { return dataset_ ? dataset_->samples() : 0; }  ///< 0: synthetic

 private:
  c10::Device device_;
  std::vector<Batch> ready_;  ///< synthetic
  std::size_t turn_ = 0;
  std::shared_ptr<const Dataset> dataset_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<Prefetch> prefetch_;  ///< last: its threads use the others
};

}  // namespace lockstep::runner
