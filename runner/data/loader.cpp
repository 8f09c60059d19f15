#include "runner/data/loader.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

constexpr int kSyntheticBatches = 4;
/// Floats that are drawn for a device; the host needs about a quarter of a second for them.
constexpr std::int64_t kDrawn = std::int64_t{1} << 25;

std::string to_string(SampleKind kind) {
  return kind == SampleKind::tokens  ? "rows of words"
         : kind == SampleKind::image ? "images"
                                     : "images with captions";
}

/// Read once for all loaders of a process that live at the same time.
std::shared_ptr<const Dataset> shared_dataset(const LoaderOptions& options) {
  static std::map<std::string, std::weak_ptr<const Dataset>> known;
  std::weak_ptr<const Dataset>& place = known[options.data + "/" + options.directory];
  if (auto dataset = place.lock()) return dataset;
  auto dataset = std::make_shared<const Dataset>(read_dataset(options.data, options.directory));
  place = dataset;
  return dataset;
}

}  // namespace

void check_fits(const Model& model, const Dataset& dataset, const LoaderOptions& options,
                int batch) {
  if (model.input_shape() != std::vector<std::int64_t>{3, 32, 32}) {
    throw InputError(
        {}, "data",
        fmt::format("{} takes {} of {}, {} holds images, shown as 3x32x32", model.name(),
                    to_string(model.samples()), fmt::join(model.input_shape(), "x"), options.data),
        "use synthetic");
  }
  if (dataset.samples() < std::int64_t{batch} * options.workers) {
    throw InputError({}, "batch",
                     fmt::format("{} samples are too few for a step", dataset.samples()));
  }
}

namespace {

/// Rows of words, and for each word the one behind it.
Batch random_text(const Model& model, int batch, const at::Generator& generator,
                  c10::Device device) {
  const std::int64_t positions = model.input_shape().front();
  const at::Tensor words =
      at::randint(model.classes(), {batch, positions + 1}, generator, at::kLong);
  return {.input = words.narrow(1, 0, positions).contiguous().to(device),
          .target = words.narrow(1, 1, positions).contiguous().to(device)};
}

/// Images, each with a caption behind it.
Batch random_captions(const Model& model, int batch, const at::Generator& generator) {
  const std::int64_t words = model.caption_words();
  const std::int64_t floats = model.input_shape().front();
  const at::Tensor image = at::randn({batch, floats - words}, generator);
  const at::Tensor caption = at::randint(model.classes(), {batch, words}, generator, at::kLong);
  return {.input = at::cat({image, caption.to(at::kFloat)}, 1), .target = caption};
}

Batch random_images(const Model& model, int batch, const at::Generator& generator) {
  std::vector<std::int64_t> shape = model.input_shape();
  shape.insert(shape.begin(), batch);
  return {.input = at::randn(shape, generator),
          .target = at::randint(model.classes(), {batch}, generator, at::kLong)};
}

/// `drawn` again and again until there are `samples`.
at::Tensor repeated(const at::Tensor& drawn, int samples, c10::Device device) {
  if (drawn.size(0) == samples) return drawn.to(device);
  std::vector<std::int64_t> shape = drawn.sizes().vec();
  shape.front() = samples;
  // First of all: where memory does not suffice, that is soon said.
  const at::Tensor all = at::empty(shape, drawn.options().device(device));
  const at::Tensor block = drawn.to(device);
  for (std::int64_t done = 0; done < samples;) {
    const std::int64_t count = std::min<std::int64_t>(block.size(0), samples - done);
    all.narrow(0, done, count).copy_(block.narrow(0, 0, count));
    done += count;
  }
  return all;
}

}  // namespace

Batch random_batch(const Model& model, int batch, std::uint64_t seed, c10::Device device) {
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  if (model.samples() == SampleKind::tokens) return random_text(model, batch, generator, device);
  const std::int64_t sample = model.input_bytes() / static_cast<std::int64_t>(sizeof(float));
  const int drawn = device.is_cpu()
                        ? batch
                        : static_cast<int>(std::clamp<std::int64_t>(kDrawn / sample, 1, batch));
  Batch block = model.samples() == SampleKind::captioned_image
                    ? random_captions(model, drawn, generator)
                    : random_images(model, drawn, generator);
  if (device.is_cpu()) return block;
  return {.input = repeated(block.input, batch, device),
          .target = repeated(block.target, batch, device)};
}

Sampler::Sampler(std::int64_t samples, int batch, const LoaderOptions& options)
    : batch_(static_cast<std::size_t>(batch)),
      rank_(static_cast<std::size_t>(options.rank)),
      workers_(static_cast<std::size_t>(options.workers)),
      seed_(options.seed),
      order_(static_cast<std::size_t>(samples)) {
  LOCKSTEP_ASSERT(order_.size() >= batch_ * workers_, "an epoch holds a step");
  shuffle();
}

void Sampler::shuffle() {
  std::iota(order_.begin(), order_.end(), 0);
  std::mt19937_64 random(seed_ + epoch_++);
  std::ranges::shuffle(order_, random);
  place_ = 0;
}

std::vector<std::int64_t> Sampler::next() {
  if (place_ + batch_ * workers_ > order_.size()) shuffle();
  std::vector<std::int64_t> mine;
  for (std::size_t i = 0; i < batch_; ++i) mine.push_back(order_[place_ + i * workers_ + rank_]);
  place_ += batch_ * workers_;
  return mine;
}

Loader::Loader(const LoaderOptions& options, const Model& model, int batch, c10::Device device)
    : device_(device) {
  if (options.data == "synthetic") {
    for (int i = 0; i < kSyntheticBatches; ++i) {
      const auto seed =
          options.seed + static_cast<std::uint64_t>(i * options.workers + options.rank);
      ready_.push_back(random_batch(model, batch, seed, device));
    }
    return;
  }
  dataset_ = shared_dataset(options);
  check_fits(model, *dataset_, options, batch);
  sampler_ = std::make_unique<Sampler>(samples(), batch, options);
  if (options.threads > 0) {
    prefetch_ = std::make_unique<Prefetch>(
        options.threads, [this] { return sampler_->next(); },
        [this](const std::vector<std::int64_t>& indices) {
          return make_batch(*dataset_, indices);
        });
  }
}

Batch Loader::next() {
  if (!ready_.empty()) return ready_[turn_++ % ready_.size()];
  const Batch batch = prefetch_ ? prefetch_->next() : make_batch(*dataset_, sampler_->next());
  return {.input = batch.input.to(device_), .target = batch.target.to(device_)};
}

}  // namespace lockstep::runner
