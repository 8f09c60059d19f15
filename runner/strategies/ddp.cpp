#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <numeric>

#include "runner/strategies/strategy.h"
#include "runner/strategies/unused_parameters.h"
#include "sim/core/error.h"
#include "sim/workload/buckets.h"

namespace lockstep::runner {

namespace {

/// One flat tensor that is reduced at once, and where each of its gradients lies in it.
struct Buffer {
  at::Tensor flat;
  at::Tensor whole;  ///< what was sent compressed, as it is used; else flat itself
  std::vector<int> parameters;
  std::vector<at::Tensor> views;   ///< of flat, one per parameter
  std::size_t missing = 0;         ///< gradients that are not ready in this pass
  std::vector<std::size_t> ready;  ///< stamps, one per pass of the step that reduced
};

/// DistributedDataParallel's rules (reducer.cpp): the first backward reduces one bucket; the
/// forward after it rebuilds the buckets in the order in which rank 0's gradients got ready;
/// buckets are reduced strictly in order, while backward goes on; buffers come from rank 0 before
/// each forward. A step may have several passes. With no_sync all but the last only add to the
/// gradients, and the forward after such a pass broadcasts nothing. Without it each is reduced for
/// itself and added to what was reduced before (DDP reduces the sum once more, which is the same
/// values and bytes). With find_unused_parameters the buckets stay those of the parameters' order,
/// reversed, each pass walks the autograd graph, and a bitmap is reduced behind the last bucket; a
/// parameter that no rank has used gets a gradient of zeros here, and none in DDP. Compressed
/// gradients are sent, and summed, as bf16.
///
/// Gradients stay where backward leaves them until their bucket is complete, and are then copied in
/// by one call. The optimizer reads them in the bucket, so nothing is copied back, unless it was
/// compressed.
class Ddp final : public Strategy {
 public:
  Ddp(const StrategyOptions& options, Model& model, Communicator& communicator, Device& device)
      : options_(options),
        model_(model),
        communicator_(communicator),
        device_(device),
        gradients_(model.parameters().size()),
        bucket_of_(model.parameters().size()),
        rebuilt_(options.find_unused_parameters) {
    share_state(model, communicator);
    std::vector<int> order(gradients_.size());
    if (options.find_unused_parameters) {
      std::iota(order.begin(), order.end(), 0);
      build(order, std::array{options.first_bucket_cap, options.bucket_cap}, /*reversed=*/true);
      used_ = at::zeros({static_cast<std::int64_t>(gradients_.size())},
                        at::TensorOptions(device.torch()).dtype(at::kInt));
    } else {
      // Until something is known about the order, DDP takes the parameters' own, reversed.
      std::iota(order.rbegin(), order.rend(), 0);
      build(order, std::array{kNoCap}, /*reversed=*/false);
    }
    if (!adds_up()) return;
    for (const at::Tensor& parameter : model.parameters()) {
      sums_.push_back(at::zeros_like(parameter.detach()));
    }
  }

  std::string kind() const override { return "ddp"; }
  double loss_weight() const override {
    return 1.0 / (communicator_.size() * static_cast<double>(options_.accumulate));
  }
  int passes() const override { return options_.accumulate; }

  void before_forward() override {
    const at::NoGradGuard no_grad;
    if (!rebuilt_ && ready_order_.size() == gradients_.size()) rebuild();
    const bool broadcasts = options_.broadcast_buffers && (pass_ == 0 || !options_.no_sync);
    if (broadcasts && !model_.flat_buffers().empty()) {
      for (const at::Tensor& buffer : model_.flat_buffers()) communicator_.broadcast(buffer, 0);
      communicator_.join();
    }
    for (Buffer& bucket : buckets_) {
      bucket.missing = bucket.parameters.size();
      if (pass_ == 0) bucket.ready.clear();
    }
    next_ = 0;
  }

  void backward(const at::Tensor& loss, const at::Tensor& root) override {
    if (options_.find_unused_parameters && reduces()) {
      unused_ = unused_parameters(loss, model_.parameters());
      for (const int parameter : unused_) {
        const at::Tensor& tensor = model_.parameters()[static_cast<std::size_t>(parameter)];
        tensor.mutable_grad() = at::zeros_like(tensor.detach());
        gradient_ready(parameter);
      }
    }
    loss.backward(root);
  }

  bool watches_gradients() const override { return true; }
  void gradient_ready(int parameter) override;

  void after_pass() override {
    if (reduces()) {
      finish_pass();
      for (const at::Tensor& parameter : model_.parameters()) parameter.mutable_grad().reset();
    }
    ++pass_;
  }

  void before_optimizer() override {
    finish_pass();
    pass_ = 0;
  }

  const std::vector<at::Tensor>& gradients() const override {
    return adds_up() ? sums_ : gradients_;
  }

  std::vector<BucketMoments> take_buckets() override;

 private:
  void build(const std::vector<int>& order, std::span<const Bytes> caps, bool reversed);
  void lay_out(Buffer& bucket);
  void rebuild();
  void finish_pass();
  bool reduces() const { return !options_.no_sync || pass_ + 1 == options_.accumulate; }
  /// Reduced gradients of several passes.
  bool adds_up() const { return options_.accumulate > 1 && !options_.no_sync; }

  StrategyOptions options_;
  Model& model_;
  Communicator& communicator_;
  Device& device_;
  std::vector<Buffer> buckets_;
  std::vector<at::Tensor> gradients_;  ///< by parameter, views of buckets
  std::vector<at::Tensor> sums_;       ///< by parameter, of the passes so far
  std::vector<std::size_t> bucket_of_;
  std::vector<int> ready_order_;  ///< of the first pass that reduces
  bool rebuilt_;
  at::Tensor used_;  ///< by parameter, one or zero
  std::vector<int> unused_;
  std::size_t next_ = 0;  ///< bucket to be reduced next
  int pass_ = 0;
};

void Ddp::build(const std::vector<int>& order, std::span<const Bytes> caps, bool reversed) {
  std::vector<Gradient> wanted;
  for (const int parameter : order) {
    const at::Tensor& tensor = model_.parameters()[static_cast<std::size_t>(parameter)];
    wanted.push_back({.bytes = {static_cast<std::int64_t>(tensor.nbytes())},
                      .type = static_cast<int>(tensor.element_size())});
  }
  std::vector<Bucket> assigned = assign_buckets(wanted, caps);
  if (reversed) std::ranges::reverse(assigned);
  buckets_.clear();
  for (const Bucket& members : assigned) {
    Buffer& bucket = buckets_.emplace_back();
    for (const int member : members) {
      bucket.parameters.push_back(order[static_cast<std::size_t>(member)]);
      bucket_of_[static_cast<std::size_t>(bucket.parameters.back())] = buckets_.size() - 1;
    }
    lay_out(bucket);
  }
}

void Ddp::lay_out(Buffer& bucket) {
  const auto parameter_of = [this](int parameter) -> const at::Tensor& {
    return model_.parameters()[static_cast<std::size_t>(parameter)];
  };
  std::int64_t elements = 0;
  for (const int parameter : bucket.parameters) elements += parameter_of(parameter).numel();
  const at::TensorOptions type =
      parameter_of(bucket.parameters.front()).options().requires_grad(false);
  const bool compressed = options_.compression == Compression::bf16;
  bucket.flat = at::empty({elements}, compressed ? type.dtype(at::kBFloat16) : type);
  bucket.whole = compressed ? at::empty({elements}, type) : bucket.flat;
  std::int64_t offset = 0;
  for (const int parameter : bucket.parameters) {
    const at::Tensor& tensor = parameter_of(parameter);
    // The parameter's own strides, so that a copy into the view is a plain one.
    const auto view = [&](const at::Tensor& flat) {
      return flat.narrow(0, offset, tensor.numel()).as_strided(tensor.sizes(), tensor.strides());
    };
    bucket.views.push_back(view(bucket.flat));
    gradients_[static_cast<std::size_t>(parameter)] = view(bucket.whole);
    offset += tensor.numel();
  }
}

void Ddp::rebuild() {
  const std::vector<std::int64_t> mine(ready_order_.begin(), ready_order_.end());
  const at::Tensor order = at::tensor(mine).to(device_.torch());
  communicator_.broadcast(order, 0);
  communicator_.join();
  const at::Tensor agreed = order.cpu();
  const std::int64_t* begin = agreed.const_data_ptr<std::int64_t>();
  build({begin, begin + agreed.numel()}, std::array{options_.first_bucket_cap, options_.bucket_cap},
        /*reversed=*/false);
  rebuilt_ = true;
}

void Ddp::gradient_ready(int parameter) {
  if (!reduces()) return;
  if (!rebuilt_ && ready_order_.size() < gradients_.size()) ready_order_.push_back(parameter);
  Buffer& bucket = buckets_[bucket_of_[static_cast<std::size_t>(parameter)]];
  LOCKSTEP_ASSERT(bucket.missing > 0, "a gradient gets ready once a pass");
  if (--bucket.missing > 0) return;

  const at::NoGradGuard no_grad;
  bucket.ready.push_back(device_.stamp());
  std::vector<at::Tensor> fresh;
  for (const int member : bucket.parameters) {
    fresh.push_back(model_.parameters()[static_cast<std::size_t>(member)].grad());
  }
  at::_foreach_copy_(bucket.views, fresh);
  for (; next_ < buckets_.size() && buckets_[next_].missing == 0; ++next_) {
    communicator_.all_reduce(buckets_[next_].flat);
  }
  if (next_ < buckets_.size() || !options_.find_unused_parameters) return;
  used_.fill_(1);
  for (const int unused : unused_) used_[unused] = 0;
  communicator_.all_reduce(used_);
}

/// What was reduced is there, whole, and on top of the passes before.
void Ddp::finish_pass() {
  LOCKSTEP_ASSERT(next_ == buckets_.size(), "every gradient of a pass gets ready");
  communicator_.join();
  const at::NoGradGuard no_grad;
  if (options_.compression != Compression::none) {
    for (Buffer& bucket : buckets_) bucket.whole.copy_(bucket.flat);
  }
  if (!adds_up()) return;
  if (pass_ == 0) {
    at::_foreach_copy_(sums_, gradients_);
  } else {
    at::_foreach_add_(sums_, gradients_);
  }
}

/// Of all passes of the step, one after the other.
std::vector<BucketMoments> Ddp::take_buckets() {
  std::vector<Transfer> reductions;
  for (const Transfer& transfer : communicator_.take_transfers()) {
    if (transfer.kind == CollectiveKind::all_reduce) reductions.push_back(transfer);
  }
  const std::size_t a_pass = buckets_.size() + (options_.find_unused_parameters ? 1 : 0);
  const std::size_t passes = buckets_.front().ready.size();
  // The communicator may hold more than one step: the last one counts.
  LOCKSTEP_ASSERT(reductions.size() >= a_pass * passes, "a step reduces every bucket");
  const std::size_t first = reductions.size() - a_pass * passes;
  std::vector<BucketMoments> moments;
  for (std::size_t pass = 0; pass < passes; ++pass) {
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const Transfer& reduction = reductions[first + pass * a_pass + i];
      moments.push_back({.bytes = reduction.bytes,
                         .ready = device_.moment(buckets_[i].ready[pass]),
                         .launch = reduction.launch,
                         .done = reduction.done});
    }
  }
  return moments;
}

}  // namespace

std::unique_ptr<Strategy> make_ddp(const StrategyOptions& options, Model& model,
                                   Communicator& communicator, Device& device) {
  return std::make_unique<Ddp>(options, model, communicator, device);
}

}  // namespace lockstep::runner
