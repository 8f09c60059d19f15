// GPUs and a worker on cores, on one host, share a batch (Choi 2019). Gradients weigh by n_i / N,
// which scaling the loss does, and each worker packs its own into one flat array. In memory that
// all share there is such an array for each worker and one for the sum.
//   On the host: each GPU copies its array there, the cores add all with all their threads, and
//     each GPU copies the sum back.
//   On the device: the cores pack into shared memory, the first GPU copies that in and adds it, the
//     GPUs reduce among themselves, and the first one copies the sum out for the cores.
// Two counters say what is there. Each grows by a known number a step, so that nobody resets them,
// and nobody gets a step ahead: gradients of the next step need the sum of this one.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>

#include <chrono>
#include <new>

#include "runner/communicators/mixed.h"
#include "runner/strategies/flat_gradients.h"
#include "runner/strategies/strategy.h"

namespace lockstep::runner {

namespace {

constexpr std::size_t kPage = 4096;  // what is pinned is whole pages
constexpr std::chrono::seconds kPatience{60};

/// What lies in the shared memory: counters, then arrays.
class Exchange {
 public:
  Exchange(MixedCommunicator& workers, std::int64_t elements)
      : elements_(elements),
        memory_(
            workers.share(kPage + array_bytes() * (static_cast<std::size_t>(workers.size()) + 1))),
        counters_(new(memory_.bytes().data()) Counters),
        sum_place_(workers.size()) {
    workers.barrier();  // the counters are zero before anybody counts
  }

  Counter& given() const { return counters_->given; }
  Counter& summed() const { return counters_->summed; }
  at::Tensor of(int rank) const {
    std::byte* begin =
        memory_.bytes().data() + kPage + array_bytes() * static_cast<std::size_t>(rank);
    return at::from_blob(begin, {elements_}, at::kFloat);
  }
  at::Tensor sum() const { return of(sum_place_); }

 private:
  struct Counters {
    Counter given;   ///< arrays of gradients in host memory, since the first step
    Counter summed;  ///< sums in host memory
  };

  std::size_t array_bytes() const {
    const std::size_t bytes = static_cast<std::size_t>(elements_) * sizeof(float);
    return (bytes + kPage - 1) / kPage * kPage;
  }

  std::int64_t elements_;
  SharedMemory memory_;
  Counters* counters_;
  int sum_place_;
};

/// What both ways have in common; `step_` counts from one.
class Mixed : public Strategy {
 public:
  Mixed(const StrategyOptions& options, Model& model, MixedCommunicator& workers)
      : model_(model),
        workers_(workers),
        copies_(workers.copies()),
        exchange_(workers, element_count(model)),
        weight_(share_of(options, workers.rank(), workers.size())) {
    share_state(model, workers);
  }
  ~Mixed() override {
    copies_.finish();
    for (const at::Tensor& array : pinned_) copies_.unpin(array);
  }
  Mixed(const Mixed&) = delete;
  Mixed& operator=(const Mixed&) = delete;

  std::string kind() const override { return "heterogeneous"; }
  double loss_weight() const override { return weight_; }
  const std::vector<at::Tensor>& gradients() const override { return gradients_; }
  std::vector<BucketMoments> take_buckets() override { return {}; }

  void before_optimizer() override {
    const at::NoGradGuard no_grad;
    ++step_;
    if (workers_.on_cores()) {
      combine_on_cores();
    } else {
      combine_on_gpu();
    }
  }

 protected:
  virtual void combine_on_cores() = 0;
  virtual void combine_on_gpu() = 0;

  /// Where gradients are packed, and where their sum is once it is there.
  void use(const at::Tensor& own, const at::Tensor& sum) {
    own_ = own;
    packed_ = views_of(own, model_);
    gradients_ = views_of(sum, model_);
  }
  void pin(const at::Tensor& array) {
    copies_.pin(array);
    pinned_.push_back(array);
  }
  void pack() { pack_gradients(model_, packed_); }
  void wait_for_given(std::uint64_t arrays) const {
    exchange_.given().wait_for(step_ * arrays, "gradients of another worker", kPatience);
  }
  void wait_for_sum() const { exchange_.summed().wait_for(step_, "sum of gradients", kPatience); }

  MixedCommunicator& workers() const { return workers_; }
  HostCopies& copies() const { return copies_; }
  const Exchange& exchange() const { return exchange_; }
  at::Tensor& own() { return own_; }

 private:
  Model& model_;
  MixedCommunicator& workers_;
  HostCopies& copies_;
  Exchange exchange_;
  double weight_;
  std::uint64_t step_ = 0;
  at::Tensor own_;                              ///< where gradients are packed
  std::vector<at::Tensor> packed_, gradients_;  ///< by parameter
  std::vector<at::Tensor> pinned_;
};

class CombineOnHost final : public Mixed {
 public:
  CombineOnHost(const StrategyOptions& options, Model& model, MixedCommunicator& workers)
      : Mixed(options, model, workers) {
    const at::Tensor flat = flat_like(model);
    if (workers.on_cores()) {
      use(flat, exchange().sum());
    } else {
      use(flat, flat);
      pin(exchange().of(workers.rank()));
      pin(exchange().sum());
    }
  }

 private:
  void combine_on_cores() override {
    pack();
    wait_for_given(static_cast<std::uint64_t>(workers().gpu_count()));
    at::Tensor sum = exchange().sum();
    at::add_out(sum, own(), exchange().of(0));
    for (int gpu = 1; gpu < workers().gpu_count(); ++gpu) sum.add_(exchange().of(gpu));
    exchange().summed().add_one();
  }

  void combine_on_gpu() override {
    pack();
    copies().out(exchange().of(workers().rank()), own(), exchange().given());
    wait_for_sum();
    copies().in(own(), exchange().sum());
  }
};

class CombineOnDevice final : public Mixed {
 public:
  CombineOnDevice(const StrategyOptions& options, Model& model, MixedCommunicator& workers)
      : Mixed(options, model, workers), of_cores_(exchange().of(workers.gpu_count())) {
    if (workers.on_cores()) {
      use(of_cores_, exchange().sum());
      return;
    }
    const at::Tensor flat = flat_like(model);
    use(flat, flat);
    if (!adds()) return;
    came_ = at::empty_like(flat);
    pin(of_cores_);
    pin(exchange().sum());
  }

 private:
  bool adds() const { return workers().rank() == 0; }

  void combine_on_cores() override {
    pack();
    exchange().given().add_one();
    wait_for_sum();
  }

  void combine_on_gpu() override {
    copies().join();  // the last sum has left
    pack();
    if (adds()) {
      wait_for_given(1);
      copies().in(came_, of_cores_);
      own().add_(came_);
    }
    if (Communicator* gpus = workers().gpus()) {
      gpus->all_reduce(own());
      gpus->join();
    }
    if (adds()) copies().out(exchange().sum(), own(), exchange().summed());
  }

  at::Tensor of_cores_;
  at::Tensor came_;  ///< on the first GPU: the gradients of the cores
};

}  // namespace

std::unique_ptr<Strategy> make_mixed(const StrategyOptions& options, Model& model,
                                     MixedCommunicator& workers) {
  if (options.combine_on_host) return std::make_unique<CombineOnHost>(options, model, workers);
  return std::make_unique<CombineOnDevice>(options, model, workers);
}

}  // namespace lockstep::runner
