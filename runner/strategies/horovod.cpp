#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty.h>

#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "runner/communicators/fusion_lane.h"
#include "runner/strategies/negotiation.h"
#include "runner/strategies/strategy.h"
#include "sim/core/error.h"
#include "sim/workload/fusion.h"

namespace lockstep::runner {

namespace {

/// A step, as its two threads see it. What only the thread beside it touches is not among this.
struct StepState {
  std::vector<bool> have;  ///< by parameter: its gradient is there, and not yet reduced
  bool running = false;    ///< the thread has gradients of this step to reduce
  bool stopping = false;
  std::exception_ptr failure;
};

/// Horovod's rules (operations.cc, controller.cc): a thread of each rank looks once a cycle which
/// gradients all ranks have, fuses those up to a threshold, copies them into one buffer, reduces
/// that and copies them back; one gradient alone is reduced where it is. The optimizer waits for
/// all.
///
/// Other than Horovod's, the thread pauses between the steps, so that others can use the
/// communicator then: its cycles begin with forward and end with the last gradient, on all ranks
/// alike, since each of them sees every gradient reduced in the same cycle.
class Horovod final : public Strategy {
 public:
  Horovod(const StrategyOptions& options, Model& model, Communicator& communicator)
      : options_(options),
        model_(model),
        communicator_(communicator),
        gradients_(model.parameters().size()),
        lane_(communicator.make_lane(gradients_.size())),
        negotiation_(lane_->control(), gradients_.size()) {
    share_state(model, communicator);
    state_.have.resize(gradients_.size());
    make_buffer();
    thread_ = std::thread([this] { work(); });
  }

  ~Horovod() override {
    {
      const std::lock_guard lock(mutex_);
      state_.stopping = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Horovod(const Horovod&) = delete;
  Horovod& operator=(const Horovod&) = delete;

  std::string kind() const override { return "horovod"; }
  double loss_weight() const override { return 1.0 / communicator_.size(); }

  void before_forward() override {
    {
      const std::lock_guard lock(mutex_);
      if (state_.failure) std::rethrow_exception(state_.failure);
      state_.have.assign(gradients_.size(), false);
      begin_ = Clock::now();
      groups_.clear();
      state_.running = true;
    }
    changed_.notify_all();
  }

  bool watches_gradients() const override { return true; }
  void gradient_ready(int parameter) override {
    const auto index = static_cast<std::size_t>(parameter);
    const std::lock_guard lock(mutex_);
    gradients_[index] = model_.parameters()[index].grad();
    state_.have[index] = true;
    lane_->note(parameter);
  }

  void before_optimizer() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !state_.running || state_.failure; });
    if (state_.failure) std::rethrow_exception(state_.failure);
    lane_->join();
  }

  const std::vector<at::Tensor>& gradients() const override { return gradients_; }
  void after_optimizer() override {
    for (at::Tensor& gradient : gradients_) gradient.reset();
  }

  std::vector<BucketMoments> take_buckets() override;

 private:
  using Clock = std::chrono::steady_clock;

  void make_buffer();
  void work();
  void run_step();
  std::vector<int> cycle();
  void reduce(const std::vector<int>& group);
  Gradient described(int parameter) const {
    const at::Tensor& tensor = model_.parameters()[static_cast<std::size_t>(parameter)];
    return {.bytes = {static_cast<std::int64_t>(tensor.nbytes())},
            .type = static_cast<int>(tensor.element_size())};
  }

  const StrategyOptions options_;
  Model& model_;
  Communicator& communicator_;
  std::mutex mutex_;
  std::condition_variable changed_;
  StepState state_;                       ///< under the mutex
  std::vector<at::Tensor> gradients_;     ///< by parameter; the thread's while it reduces them
  std::vector<std::vector<int>> groups_;  ///< of the last step; the thread's while it is running
  std::unique_ptr<FusionLane> lane_;
  Negotiation negotiation_;  ///< the thread's
  Clock::time_point begin_;  ///< of the step, whose first cycle begins then
  at::Tensor buffer_;        ///< the thread's
  std::thread thread_;
};

/// The thread is woken for its cycle at once, as Horovod's is, also where the communicator has made
/// the threads of this process wait for their turn (see gloo.cpp).
void run_when_woken() {
  const sched_param none{};
  if (sched_getscheduler(0) == SCHED_BATCH) sched_setscheduler(0, SCHED_OTHER, &none);
}

/// For the largest group that can be fused.
void Horovod::make_buffer() {
  std::int64_t elements = 0;
  for (const at::Tensor& parameter : model_.parameters()) elements += parameter.numel();
  const at::Tensor& first = model_.parameters().front();
  const auto element = static_cast<std::int64_t>(first.element_size());
  elements = std::min(elements, options_.fusion_threshold.count / element);
  buffer_ = at::empty({elements}, first.options().requires_grad(false));
}

void Horovod::work() {
  run_when_woken();
  const at::NoGradGuard no_grad;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return state_.running || state_.stopping; });
      if (state_.stopping) return;
    }
    std::exception_ptr failure;
    try {
      run_step();
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      state_.running = false;
      state_.failure = failure;
    }
    changed_.notify_all();
    if (failure) return;
  }
}

void Horovod::run_step() {
  const Clock::time_point begin = begin_;
  const auto now = [begin] {
    return Time::nanoseconds(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
  };
  for (std::size_t left = gradients_.size(); left > 0;) {
    const Time began = now();
    left -= cycle().size();
    if (left == 0) return;
    const Time next = next_cycle(began, now(), options_.cycle_time);
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, begin + std::chrono::nanoseconds(next.ns()),
                        [this] { return state_.stopping; });
    if (state_.stopping) return;
  }
}

/// What was reduced.
std::vector<int> Horovod::cycle() {
  std::vector<bool> have;
  {
    const std::lock_guard lock(mutex_);
    have = state_.have;
  }
  const std::vector<int> agreed = negotiation_.agree(have);
  std::vector<Gradient> found;
  for (const int parameter : agreed) found.push_back(described(parameter));
  for (const Bucket& members : fuse(found, options_.fusion_threshold)) {
    std::vector<int> group;
    for (const int member : members) group.push_back(agreed[static_cast<std::size_t>(member)]);
    reduce(group);
  }
  return agreed;
}

void Horovod::reduce(const std::vector<int>& group) {
  std::vector<at::Tensor> gradients;
  {
    const std::lock_guard lock(mutex_);
    for (const int parameter : group) {
      const auto index = static_cast<std::size_t>(parameter);
      gradients.push_back(gradients_[index]);
      state_.have[index] = false;
    }
  }
  lane_->await(group);
  groups_.push_back(group);
  if (gradients.size() == 1) {
    lane_->reduce(gradients.front(), [] {}, [] {});
    return;
  }
  std::vector<at::Tensor> views;
  std::int64_t offset = 0;
  for (const at::Tensor& gradient : gradients) {
    // The gradient's own strides, so that the copy is a plain one.
    views.push_back(buffer_.narrow(0, offset, gradient.numel())
                        .as_strided(gradient.sizes(), gradient.strides()));
    offset += gradient.numel();
  }
  lane_->reduce(
      buffer_.narrow(0, 0, offset), [&] { at::_foreach_copy_(views, gradients); },
      [&] { at::_foreach_copy_(gradients, views); });
}

std::vector<BucketMoments> Horovod::take_buckets() {
  const std::vector<Transfer> transfers = lane_->take_transfers();
  std::vector<BucketMoments> moments;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    BucketMoments& group = moments.emplace_back();
    for (const int parameter : groups_[i]) {
      group.bytes += described(parameter).bytes;
      group.ready = std::max(group.ready, lane_->made(parameter));
    }
    // The lane may hold more than one step: the last one counts.
    if (transfers.size() < groups_.size()) continue;
    const Transfer& transfer = transfers[transfers.size() - groups_.size() + i];
    group.launch = transfer.launch;
    group.done = transfer.done;
  }
  return moments;
}

}  // namespace

std::unique_ptr<Strategy> make_horovod(const StrategyOptions& options, Model& model,
                                       Communicator& communicator) {
  return std::make_unique<Horovod>(options, model, communicator);
}

}  // namespace lockstep::runner
