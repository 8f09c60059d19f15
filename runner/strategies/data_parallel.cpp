#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty.h>

#include <array>

#include "runner/strategies/replica_threads.h"
#include "runner/strategies/strategy.h"
#include "sim/core/error.h"
#include "sim/workload/buckets.h"

namespace lockstep::runner {

namespace {

constexpr const char* kDataParallel = "data_parallel";

/// One array, and its parts in the shapes of parameters.
struct Flat {
  at::Tensor whole;
  std::vector<at::Tensor> views;
};

/// Parameters that leave device 0 as one array. Replicas' parameters are views of `copies`.
struct Outgoing {
  std::vector<at::Tensor> parameters;  ///< of device 0, unless `flat` is where they lie
  Flat flat;
  std::vector<at::Tensor> copies;  ///< by device, from device 1 on
};

/// Gradients that arrive on device 0 as one array.
struct Incoming {
  std::vector<int> parameters;
  std::vector<Flat> flats;  ///< by device; unused where the gradient is a lone one
  at::Tensor sum;
  std::size_t ready = 0, done = 0;  ///< stamps
};

std::vector<Gradient> sizes_of(const Model& model) {
  std::vector<Gradient> sizes;
  for (const at::Tensor& parameter : model.parameters()) {
    sizes.push_back({.bytes = {static_cast<std::int64_t>(parameter.nbytes())},
                     .type = static_cast<int>(parameter.element_size())});
  }
  return sizes;
}

/// nn.DataParallel (torch/nn/parallel): every forward scatters the batch, sends device 0's
/// parameters and buffers to all, in chunks of 10 MiB, runs a thread for each device, and gathers
/// the outputs; the loss is device 0's. Backward scatters the gradient of the outputs, runs all
/// replicas' backward, and reduces their gradients to device 0, in chunks again: a sum, because
/// the loss is the mean over the whole batch. Buffers that replicas change are lost.
///
/// PyTorch makes the replicas anew each time, as modules around views of what has arrived; here
/// they stay, over arrays that stay, so that what the host does is launching. Chunks are put
/// together by one call, as DDP's buckets are.
class DataParallel final : public Strategy {
 public:
  DataParallel(Model& model, ReplicaDevices& devices, Device& device)
      : model_(model),
        devices_(devices),
        device_(device),
        gradients_(model.parameters().size()),
        threads_(devices) {
    const at::NoGradGuard no_grad;
    for (int i = 1; i < devices.count(); ++i) {
      replicas_.push_back(model.replica(devices.torch(i)));
    }
    for (const Bucket& chunk : assign_buckets(sizes_of(model), std::array{kChunkLimit})) {
      add_outgoing(chunk);
    }
    for (const Bucket& chunk : take_chunks(sizes_of(model), kChunkLimit)) add_incoming(chunk);
    for (std::size_t i = 0; i < model.flat_buffers().size(); ++i) {
      Outgoing buffers{.parameters = {}, .flat = {model.flat_buffers()[i], {}}, .copies = {}};
      for (const Model& replica : replicas_) buffers.copies.push_back(replica.flat_buffers()[i]);
      outgoing_.push_back(std::move(buffers));
    }
  }

  std::string kind() const override { return kDataParallel; }
  double loss_weight() const override { return 1.0; }

  at::Tensor loss(Model& model, const at::Tensor& input, const at::Tensor& target,
                  Recorder* recorder) override;
  void backward(const at::Tensor& loss, const at::Tensor& root) override;
  void before_optimizer() override;
  const std::vector<at::Tensor>& gradients() const override { return gradients_; }
  void after_optimizer() override {
    for (const Model& replica : replicas_) {
      for (const at::Tensor& parameter : replica.parameters()) parameter.mutable_grad().reset();
    }
  }

  std::vector<BucketMoments> take_buckets() override {
    std::vector<BucketMoments> moments;
    for (const Incoming& chunk : incoming_) {
      const Moment ready = device_.moment(chunk.ready);
      moments.push_back({.bytes = {static_cast<std::int64_t>(chunk.sum.nbytes())},
                         .ready = ready,
                         .launch = ready,
                         .done = device_.moment(chunk.done)});
    }
    return moments;
  }

 private:
  Model& on(int device) {
    return device == 0 ? model_ : replicas_[static_cast<std::size_t>(device) - 1];
  }
  const at::Tensor& parameter(int device, int index) {
    return on(device).parameters()[static_cast<std::size_t>(index)];
  }
  Flat flat_for(int device, const Bucket& chunk);
  void add_outgoing(const Bucket& chunk);
  void add_incoming(const Bucket& chunk);
  void replicate();
  at::Tensor flattened(Incoming& chunk, int device);

  Model& model_;
  ReplicaDevices& devices_;
  Device& device_;
  std::vector<Model> replicas_;  ///< of devices 1, 2, ...
  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
  std::vector<at::Tensor> gradients_;  ///< by parameter, views of sums
  std::vector<at::Tensor> outputs_;    ///< by device
  at::Tensor gathered_;
  ReplicaThreads threads_;
};

/// Room for what the chunk's parameters hold.
Flat DataParallel::flat_for(int device, const Bucket& chunk) {
  std::int64_t elements = 0;
  for (const int member : chunk) elements += parameter(device, member).numel();
  Flat flat;
  flat.whole =
      at::empty({elements}, parameter(device, chunk.front()).options().requires_grad(false));
  std::int64_t offset = 0;
  for (const int member : chunk) {
    const at::Tensor& like = parameter(device, member);
    flat.views.push_back(flat.whole.narrow(0, offset, like.numel()).view(like.sizes()));
    offset += like.numel();
  }
  return flat;
}

/// A lone parameter is sent from where it lies.
void DataParallel::add_outgoing(const Bucket& chunk) {
  Outgoing outgoing;
  if (chunk.size() == 1) {
    outgoing.flat.whole = parameter(0, chunk.front()).detach().view({-1});
  } else {
    outgoing.flat = flat_for(0, chunk);
    for (const int member : chunk) outgoing.parameters.push_back(parameter(0, member).detach());
  }
  for (int device = 1; device < devices_.count(); ++device) {
    const Flat copy = flat_for(device, chunk);
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      parameter(device, chunk[i]).set_data(copy.views[i]);
    }
    outgoing.copies.push_back(copy.whole);
  }
  outgoing_.push_back(std::move(outgoing));
}

void DataParallel::add_incoming(const Bucket& chunk) {
  Incoming incoming;
  incoming.parameters = chunk;
  for (int device = 0; device < devices_.count(); ++device) {
    incoming.flats.push_back(chunk.size() == 1 ? Flat{} : flat_for(device, chunk));
  }
  const Flat sum = flat_for(0, chunk);
  incoming.sum = sum.whole;
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    gradients_[static_cast<std::size_t>(chunk[i])] = sum.views[i];
  }
  incoming_.push_back(std::move(incoming));
}

void DataParallel::replicate() {
  const at::NoGradGuard no_grad;
  for (Outgoing& chunk : outgoing_) {
    if (!chunk.parameters.empty()) at::_foreach_copy_(chunk.flat.views, chunk.parameters);
    devices_.broadcast(chunk.flat.whole, chunk.copies);
  }
}

at::Tensor DataParallel::loss(Model& model, const at::Tensor& input, const at::Tensor& target,
                              Recorder* recorder) {
  LOCKSTEP_ASSERT(&model == &model_, "the model that was replicated");
  const std::vector<at::Tensor> shares = devices_.scatter(input);
  replicate();
  outputs_.assign(shares.size(), {});
  threads_.run([&](int device) {
    const auto i = static_cast<std::size_t>(device);
    outputs_[i] = on(device).output(shares[i], device == 0 ? recorder : nullptr);
  });
  std::vector<at::Tensor> values;
  for (const at::Tensor& output : outputs_) values.push_back(output.detach());
  gathered_ = devices_.gather(values).requires_grad_(true);
  return model_.loss_of(gathered_, target, recorder);
}

void DataParallel::backward(const at::Tensor& loss, const at::Tensor& root) {
  loss.backward(root);
  const std::vector<at::Tensor> gradients = devices_.scatter(gathered_.grad());
  // One call for each device, from its own thread: autograd takes the streams to begin in from the
  // thread that calls.
  threads_.run([&](int device) {
    const auto i = static_cast<std::size_t>(device);
    outputs_[i].backward(gradients[i]);
  });
  outputs_.clear();
  gathered_.reset();
}

/// A lone gradient is sent as it is.
at::Tensor DataParallel::flattened(Incoming& chunk, int device) {
  if (chunk.parameters.size() == 1) {
    return parameter(device, chunk.parameters.front()).grad().reshape({-1});
  }
  std::vector<at::Tensor> fresh;
  for (const int member : chunk.parameters) fresh.push_back(parameter(device, member).grad());
  const Flat& flat = chunk.flats[static_cast<std::size_t>(device)];
  at::_foreach_copy_(flat.views, fresh);
  return flat.whole;
}

void DataParallel::before_optimizer() {
  const at::NoGradGuard no_grad;
  for (Incoming& chunk : incoming_) {
    std::vector<at::Tensor> parts;
    for (int device = 0; device < devices_.count(); ++device) {
      parts.push_back(flattened(chunk, device));
    }
    chunk.ready = device_.stamp();
    devices_.reduce(parts, chunk.sum);
    chunk.done = device_.stamp();
  }
}

}  // namespace

std::unique_ptr<Strategy> make_data_parallel(Model& model, ReplicaDevices& devices,
                                             Device& device) {
  return std::make_unique<DataParallel>(model, devices, device);
}

}  // namespace lockstep::runner
