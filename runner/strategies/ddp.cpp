#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <numeric>

#include "runner/strategies/strategy.h"
#include "sim/core/error.h"
#include "sim/workload/buckets.h"

namespace lockstep::runner {

namespace {

/// One flat tensor that is reduced at once, and where each of its gradients lies in it.
struct Buffer {
  at::Tensor flat;
  std::vector<int> parameters;
  std::vector<at::Tensor> views;  ///< of flat, one per parameter
  std::size_t missing = 0;        ///< gradients that are not ready in this step
  std::size_t ready = 0;          ///< stamp
};

/// DistributedDataParallel's rules (reducer.cpp): the first iteration reduces one bucket; the
/// second forward rebuilds the buckets in the order in which rank 0's gradients got ready; buckets
/// are reduced strictly in order, while backward goes on; buffers come from rank 0 before each
/// forward.
///
/// Gradients stay where backward leaves them until their bucket is complete, and are then copied in
/// by one call. The optimizer reads them in the bucket, so nothing is copied back.
class Ddp final : public Strategy {
 public:
  Ddp(const StrategyOptions& options, Model& model, Communicator& communicator, Device& device)
      : options_(options),
        model_(model),
        communicator_(communicator),
        device_(device),
        gradients_(model.parameters().size()),
        bucket_of_(model.parameters().size()) {
    share_state(model, communicator);
    // Until something is known about the order, DDP takes the parameters' own, reversed.
    std::vector<int> order(gradients_.size());
    std::iota(order.rbegin(), order.rend(), 0);
    build(order, std::array{kNoCap});
  }

  std::string kind() const override { return "ddp"; }
  double loss_weight() const override { return 1.0 / communicator_.size(); }

  void before_forward() override {
    const at::NoGradGuard no_grad;
    if (!rebuilt_ && ready_order_.size() == gradients_.size()) rebuild();
    if (options_.broadcast_buffers && !model_.flat_buffers().empty()) {
      for (const at::Tensor& buffer : model_.flat_buffers()) communicator_.broadcast(buffer, 0);
      communicator_.join();
    }
    for (Buffer& bucket : buckets_) bucket.missing = bucket.parameters.size();
    next_ = 0;
  }

  bool watches_gradients() const override { return true; }
  void gradient_ready(int parameter) override;

  void before_optimizer() override {
    LOCKSTEP_ASSERT(next_ == buckets_.size(), "every gradient of a step gets ready");
    communicator_.join();
  }

  const std::vector<at::Tensor>& gradients() const override { return gradients_; }

  std::vector<BucketMoments> take_buckets() override;

 private:
  void build(const std::vector<int>& order, std::span<const Bytes> caps);
  void rebuild();

  StrategyOptions options_;
  Model& model_;
  Communicator& communicator_;
  Device& device_;
  std::vector<Buffer> buckets_;
  std::vector<at::Tensor> gradients_;  ///< by parameter, views of buckets
  std::vector<std::size_t> bucket_of_;
  std::vector<int> ready_order_;  ///< of the first iteration
  bool rebuilt_ = false;
  std::size_t next_ = 0;  ///< bucket to be reduced next
};

void Ddp::build(const std::vector<int>& order, std::span<const Bytes> caps) {
  std::vector<Gradient> wanted;
  for (const int parameter : order) {
    const at::Tensor& tensor = model_.parameters()[static_cast<std::size_t>(parameter)];
    wanted.push_back({.bytes = {static_cast<std::int64_t>(tensor.nbytes())},
                      .type = static_cast<int>(tensor.element_size())});
  }
  buckets_.clear();
  for (const Bucket& members : assign_buckets(wanted, caps)) {
    Buffer& bucket = buckets_.emplace_back();
    std::int64_t elements = 0;
    for (const int member : members) {
      const int parameter = order[static_cast<std::size_t>(member)];
      bucket.parameters.push_back(parameter);
      elements += model_.parameters()[static_cast<std::size_t>(parameter)].numel();
    }
    const at::Tensor& first =
        model_.parameters()[static_cast<std::size_t>(bucket.parameters.front())];
    bucket.flat = at::empty({elements}, first.options().requires_grad(false));
    std::int64_t offset = 0;
    for (const int parameter : bucket.parameters) {
      const at::Tensor& tensor = model_.parameters()[static_cast<std::size_t>(parameter)];
      // The parameter's own strides, so that a copy into the view is a plain one.
      at::Tensor view = bucket.flat.narrow(0, offset, tensor.numel())
                            .as_strided(tensor.sizes(), tensor.strides());
      gradients_[static_cast<std::size_t>(parameter)] = view;
      bucket_of_[static_cast<std::size_t>(parameter)] = buckets_.size() - 1;
      bucket.views.push_back(std::move(view));
      offset += tensor.numel();
    }
  }
}

void Ddp::rebuild() {
  const std::vector<std::int64_t> mine(ready_order_.begin(), ready_order_.end());
  const at::Tensor order = at::tensor(mine).to(device_.torch());
  communicator_.broadcast(order, 0);
  communicator_.join();
  const at::Tensor agreed = order.cpu();
  const std::int64_t* begin = agreed.const_data_ptr<std::int64_t>();
  build({begin, begin + agreed.numel()},
        std::array{options_.first_bucket_cap, options_.bucket_cap});
  rebuilt_ = true;
}

void Ddp::gradient_ready(int parameter) {
  if (!rebuilt_ && ready_order_.size() < gradients_.size()) ready_order_.push_back(parameter);
  Buffer& bucket = buckets_[bucket_of_[static_cast<std::size_t>(parameter)]];
  LOCKSTEP_ASSERT(bucket.missing > 0, "a gradient gets ready once a step");
  if (--bucket.missing > 0) return;

  const at::NoGradGuard no_grad;
  bucket.ready = device_.stamp();
  std::vector<at::Tensor> fresh;
  for (const int member : bucket.parameters) {
    fresh.push_back(model_.parameters()[static_cast<std::size_t>(member)].grad());
  }
  at::_foreach_copy_(bucket.views, fresh);
  for (; next_ < buckets_.size() && buckets_[next_].missing == 0; ++next_) {
    communicator_.all_reduce(buckets_[next_].flat);
  }
}

std::vector<BucketMoments> Ddp::take_buckets() {
  std::vector<Transfer> reductions;
  for (const Transfer& transfer : communicator_.take_transfers()) {
    if (transfer.kind == CollectiveKind::all_reduce) reductions.push_back(transfer);
  }
  // The communicator may hold more than one step: the last one counts.
  LOCKSTEP_ASSERT(reductions.size() >= buckets_.size(), "a step reduces every bucket");
  reductions.erase(reductions.begin(),
                   reductions.end() - static_cast<std::ptrdiff_t>(buckets_.size()));
  std::vector<BucketMoments> moments;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    moments.push_back({.bytes = reductions[i].bytes,
                       .ready = device_.moment(buckets_[i].ready),
                       .launch = reductions[i].launch,
                       .done = reductions[i].done});
  }
  return moments;
}

}  // namespace

std::unique_ptr<Strategy> make_ddp(const StrategyOptions& options, Model& model,
                                   Communicator& communicator, Device& device) {
  return std::make_unique<Ddp>(options, model, communicator, device);
}

}  // namespace lockstep::runner
