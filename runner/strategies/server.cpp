#include "runner/strategies/server.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <semaphore>
#include <thread>
#include <vector>

#include "runner/measure/clock.h"
#include "runner/measure/statistics.h"
#include "runner/measure/train.h"

namespace lockstep::runner {

namespace {

constexpr std::int64_t kNumbers = 2;
constexpr std::int64_t kFloatsOfNumber = 2;  // an int64 takes the room of two floats

/// What has arrived, in that order, from several threads.
class Arrivals {
 public:
  void add(int worker) {
    const std::lock_guard lock(mutex_);
    workers_.push_back(worker);
    changed_.notify_one();
  }
  void fail(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
    changed_.notify_one();
  }
  /// Waits for it.
  int next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return failure_ || !workers_.empty(); });
    if (failure_) std::rethrow_exception(failure_);
    const int worker = workers_.front();
    workers_.pop_front();
    return worker;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<int> workers_;
  std::exception_ptr failure_;
};

/// What the server keeps of one worker. A thread of its own receives its gradients, so that those
/// of several workers come in at the same time; the server then takes them in their order.
struct Seat {
  Seat(PointToPoint& group, std::int64_t floats)
      : push(floats, /*pinned=*/false), push_box(push.mailbox(group, ServerTag::push)) {}
  ShardMessage push;
  std::unique_ptr<Mailbox> push_box;
  std::optional<ShardMessage> reply{};  ///< none: everybody gets the shard itself
  std::unique_ptr<Mailbox> reply_box{};
  std::counting_semaphore<> taken{0};  ///< `push` may be written again
  bool sending = false;                ///< the reply
  bool closed = false;
  std::int64_t clock = 0;  ///< gradients applied
  std::int64_t applied_at = 0;
};

/// One shard, from its initial parameters until all workers have closed.
class Shard {
 public:
  Shard(PointToPoint& group, const ServerOrder& order, const std::function<void(bool)>& tell);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;
  void run();

 private:
  bool synchronous() const { return order_.staleness == 0; }
  void receive(int worker);
  void add(Seat& seat);
  void apply(int worker);
  void answer_waiting();
  bool held_back(const Seat& seat) const;
  void answer(int worker);
  static void finish_sending(Seat& seat) {
    if (seat.sending) seat.reply_box->wait_sent();
    seat.sending = false;
  }

  PointToPoint& group_;
  const ServerOrder order_;
  const std::function<void(bool)>& tell_;
  ShardMessage parameters_;
  Sgd sgd_;
  std::int64_t version_ = 0;  ///< updates applied
  std::deque<Seat> seats_;    ///< by worker
  std::vector<int> waiting_;  ///< workers without an answer, in the order of their arrival
  at::Tensor sum_;            ///< of a synchronous step's gradients so far
  int added_ = 0;
  Arrivals arrivals_;
  std::atomic<bool> stopping_ = false;
  std::vector<std::jthread> threads_;
};

Shard::Shard(PointToPoint& group, const ServerOrder& order, const std::function<void(bool)>& tell)
    : group_(group),
      order_(order),
      tell_(tell),
      parameters_(order.floats, /*pinned=*/false),
      sgd_({parameters_.floats()}, {}) {
  const auto initial = parameters_.mailbox(group, ServerTag::initial);
  initial->receive(0);
  initial->wait_received();
  for (int worker = 0; worker < static_cast<int>(order.workers); ++worker) {
    Seat& seat = seats_.emplace_back(group, order.floats);
    if (!synchronous()) seat.reply.emplace(order.floats, /*pinned=*/false);
    const ShardMessage& reply = seat.reply ? *seat.reply : parameters_;
    seat.reply_box = reply.mailbox(group, ServerTag::reply);
  }
  for (int worker = 0; worker < static_cast<int>(order.workers); ++worker) {
    threads_.emplace_back([this, worker] { receive(worker); });
  }
}

Shard::~Shard() {
  stopping_ = true;
  for (Seat& seat : seats_) {
    seat.push_box->abort();
    seat.taken.release();
  }
}

void Shard::receive(int worker) {
  Seat& seat = seats_[static_cast<std::size_t>(worker)];
  try {
    while (!stopping_) {
      seat.push_box->receive(worker);
      if (!seat.push_box->wait_received()) return;
      const bool last = seat.push.number(0) != 0;
      arrivals_.add(worker);
      if (last) return;
      seat.taken.acquire();
    }
  } catch (...) {
    arrivals_.fail(std::current_exception());
  }
}

void Shard::run() {
  const at::NoGradGuard no_grad;
  for (std::int64_t open = order_.workers; open > 0;) {
    tell_(false);
    const int worker = arrivals_.next();
    tell_(true);
    Seat& seat = seats_[static_cast<std::size_t>(worker)];
    if (seat.push.number(0) != 0) {
      seat.closed = true;
      --open;
      answer_waiting();
    } else if (synchronous()) {
      add(seat);
    } else {
      apply(worker);
    }
  }
  for (Seat& seat : seats_) finish_sending(seat);
}

/// The first gradient of a step is the sum so far. When all have been added, nobody is still being
/// sent the parameters: each has received them before it computed.
void Shard::add(Seat& seat) {
  if (added_ == 0) {
    sum_ = seat.push.floats();
  } else {
    sum_.add_(seat.push.floats());
  }
  if (++added_ < std::ssize(seats_)) return;
  added_ = 0;
  for (Seat& each : seats_) finish_sending(each);
  sgd_.step({sum_});
  parameters_.set_number(0, version_);
  parameters_.set_number(1, ++version_);
  for (int worker = 0; worker < static_cast<int>(seats_.size()); ++worker) {
    Seat& each = seats_[static_cast<std::size_t>(worker)];
    each.taken.release();
    each.reply_box->send(worker);
    each.sending = true;
  }
}

void Shard::apply(int worker) {
  Seat& seat = seats_[static_cast<std::size_t>(worker)];
  sgd_.step({seat.push.floats()});
  seat.applied_at = version_++;
  ++seat.clock;
  seat.taken.release();
  waiting_.push_back(worker);
  answer_waiting();
}

bool Shard::held_back(const Seat& seat) const {
  if (order_.staleness < 0) return false;
  std::int64_t slowest = seat.clock;
  for (const Seat& other : seats_) {
    if (!other.closed) slowest = std::min(slowest, other.clock);
  }
  return seat.clock - slowest > order_.staleness;
}

void Shard::answer_waiting() {
  std::erase_if(waiting_, [this](int worker) {
    if (held_back(seats_[static_cast<std::size_t>(worker)])) return false;
    answer(worker);
    return true;
  });
}

void Shard::answer(int worker) {
  Seat& seat = seats_[static_cast<std::size_t>(worker)];
  finish_sending(seat);
  seat.reply->floats().copy_(parameters_.floats());
  seat.reply->set_number(0, seat.applied_at);
  seat.reply->set_number(1, version_);
  seat.reply_box->send(worker);
  seat.sending = true;
}

void echo(PointToPoint& group, const ServerOrder& order) {
  std::vector<float> memory(static_cast<std::size_t>(order.floats));
  const auto box = group.mailbox(memory.data(), memory.size() * sizeof(float),
                                 static_cast<std::uint64_t>(ServerTag::echo));
  for (std::int64_t i = 0; i < order.rounds; ++i) {
    box->receive(0);
    box->wait_received();
    box->send(0);
    box->wait_sent();
  }
}

/// What a server sends back of its work.
using WorkNumbers = std::array<std::int64_t, 3>;

std::unique_ptr<Mailbox> work_box(PointToPoint& group, WorkNumbers& numbers) {
  return group.mailbox(numbers.data(), sizeof numbers, static_cast<std::uint64_t>(ServerTag::work));
}

void work(PointToPoint& group, const ServerOrder& order) {
  constexpr std::size_t kDropped = 2;  // they touch the memory for the first time
  const at::NoGradGuard no_grad;
  const at::Tensor gradient = at::zeros({order.floats}), parameters = at::zeros({order.floats});
  const at::Tensor reply = at::zeros({order.floats});
  at::Tensor sum = at::zeros({order.floats});
  Sgd sgd({parameters}, {});
  std::array<std::vector<std::int64_t>, 3> times;
  const auto time = [&](std::size_t which, const auto& what) {
    gradient.fill_(1);  // it has just arrived
    const Moment begin = host_now();
    what();
    times[which].push_back(host_now() - begin);
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(order.rounds) + kDropped; ++i) {
    time(0, [&] { sum.add_(gradient); });
    time(1, [&] { sgd.step({gradient}); });
    time(2, [&] { reply.copy_(parameters); });
  }
  WorkNumbers numbers{};
  for (std::size_t which = 0; which < numbers.size(); ++which) {
    times[which].erase(times[which].begin(), times[which].begin() + kDropped);
    numbers[which] = median_ns(times[which]);
  }
  const auto box = work_box(group, numbers);
  box->send(0);
  box->wait_sent();
}

}  // namespace

ShardMessage::ShardMessage(std::int64_t floats, bool pinned)
    : memory_(at::empty({floats + kNumbers * kFloatsOfNumber},
                        at::TensorOptions().dtype(at::kFloat).pinned_memory(pinned))),
      floats_(memory_.narrow(0, 0, floats)) {
  for (int index = 0; index < kNumbers; ++index) set_number(index, 0);
}

std::int64_t ShardMessage::number(int index) const {
  std::int64_t value = 0;
  const float* behind = memory_.const_data_ptr<float>() + floats_.numel();
  std::memcpy(&value, behind + index * kFloatsOfNumber, sizeof value);
  return value;
}

void ShardMessage::set_number(int index, std::int64_t value) {
  float* behind = memory_.mutable_data_ptr<float>() + floats_.numel();
  std::memcpy(behind + index * kFloatsOfNumber, &value, sizeof value);
}

std::unique_ptr<Mailbox> ShardMessage::mailbox(PointToPoint& group, ServerTag tag) const {
  return group.mailbox(memory_.mutable_data_ptr(), memory_.nbytes(),
                       static_cast<std::uint64_t>(tag));
}

void serve(PointToPoint& group, const std::function<void(bool)>& tell) {
  ServerOrder order;
  const auto box =
      group.mailbox(&order, sizeof order, static_cast<std::uint64_t>(ServerTag::order));
  for (;;) {
    tell(false);
    box->receive(0);
    box->wait_received();
    tell(true);
    switch (order.what) {
      case ServerOrder::What::train:
        Shard(group, order, tell).run();
        break;
      case ServerOrder::What::echo:
        echo(group, order);
        break;
      case ServerOrder::What::work:
        work(group, order);
        break;
      case ServerOrder::What::leave:
        return;
    }
  }
}

void order_server(PointToPoint& group, int server, ServerOrder order) {
  const auto box =
      group.mailbox(&order, sizeof order, static_cast<std::uint64_t>(ServerTag::order));
  box->send(server);
  box->wait_sent();
}

std::vector<Moment> time_messages(PointToPoint& group, int server, Bytes bytes, int rounds) {
  std::vector<float> memory(static_cast<std::size_t>(bytes.count) / sizeof(float));
  order_server(group, server,
               {.what = ServerOrder::What::echo,
                .floats = static_cast<std::int64_t>(memory.size()),
                .rounds = rounds});
  const auto box = group.mailbox(memory.data(), memory.size() * sizeof(float),
                                 static_cast<std::uint64_t>(ServerTag::echo));
  std::vector<Moment> times;
  for (int i = 0; i < rounds; ++i) {
    const Moment begin = host_now();
    box->send(server);
    box->wait_sent();
    box->receive(server);
    box->wait_received();
    times.push_back((host_now() - begin) / 2);
  }
  return times;
}

ServerWork time_server_work(PointToPoint& group, int workers, Bytes bytes, int rounds) {
  const int servers = group.size() - workers;
  for (int server = workers; server < group.size(); ++server) {
    order_server(group, server,
                 {.what = ServerOrder::What::work,
                  .floats = bytes.count / static_cast<std::int64_t>(sizeof(float)),
                  .rounds = rounds});
  }
  WorkNumbers sums{};
  for (int server = workers; server < group.size(); ++server) {
    WorkNumbers numbers{};
    const auto box = work_box(group, numbers);
    box->receive(server);
    box->wait_received();
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += numbers[i] / servers;
  }
  return {.add = sums[0], .apply = sums[1], .copy = sums[2]};
}

}  // namespace lockstep::runner
