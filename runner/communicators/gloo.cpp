#include "runner/communicators/gloo.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/gather.h>
#include <gloo/rendezvous/context.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include "runner/communicators/fusion_lane.h"
#include "runner/communicators/lost_peers.h"
#include "runner/communicators/point_to_point.h"
#include "runner/measure/clock.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

/// Where Gloo's workers leave their addresses for each other.
class GlooStore final : public gloo::rendezvous::Store {
 public:
  GlooStore(std::shared_ptr<runner::Store> store, std::string prefix,
            std::chrono::milliseconds timeout)
      : store_(std::move(store)), prefix_(std::move(prefix)), timeout_(timeout) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    store_->set(prefix_ + key, {data.begin(), data.end()});
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_->get(prefix_ + key, timeout_);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    for (const std::string& key : keys) store_->get(prefix_ + key, timeout);
  }

 private:
  std::shared_ptr<runner::Store> store_;
  std::string prefix_;
  std::chrono::milliseconds timeout_;
};

/// The address that this host has on the way to `host`. Nothing is sent: connecting a datagram
/// socket only looks up the route.
std::string address_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), "1", &hints, &found); error != 0) {
    throw RunError(fmt::format("cannot resolve {}: {}", host, gai_strerror(error)));
  }
  const int fd = socket(found->ai_family, SOCK_DGRAM, 0);
  sockaddr_storage local{};
  socklen_t length = sizeof local;
  char text[INET6_ADDRSTRLEN] = "";
  const bool reached = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                       getsockname(fd, reinterpret_cast<sockaddr*>(&local), &length) == 0 &&
                       getnameinfo(reinterpret_cast<sockaddr*>(&local), length, text, sizeof text,
                                   nullptr, 0, NI_NUMERICHOST) == 0;
  if (fd >= 0) close(fd);
  freeaddrinfo(found);
  if (!reached) throw RunError(fmt::format("there is no way from here to {}", host));
  return text;
}

/// This thread and those it starts from now on take turns: none interrupts another because it was
/// woken up.
///
/// A worker computes, communicates and polls Gloo's sockets on the cores that it is bound to, often
/// a single one. A thread that is woken up just then interrupts one that holds the lock that both
/// need, and the lock stays held until the scheduler steps in: a small all-reduce took 4 ms on one
/// host where it now takes 0.2, or, when only the polling thread was held back, 3 ms between two
/// hosts instead of 0.4. On a busy machine a woken thread waits its turn, some milliseconds.
void take_turns() {
  const sched_param none{};
  // Who runs under a policy of his own has chosen it. Refused, it is only slower.
  if (sched_getscheduler(0) == SCHED_OTHER) sched_setscheduler(0, SCHED_BATCH, &none);
}

std::shared_ptr<gloo::transport::Device> make_transport(const WorkerEnvironment& environment) {
  take_turns();
  gloo::transport::tcp::attr where;
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface != nullptr && *interface != '\0') {
    where.iface = interface;
  } else {
    where.hostname = address_towards(environment.master_address);
  }
  return gloo::transport::tcp::CreateDevice(where);
}

template <class T>
void add(void* out, const void* a, const void* b, std::size_t count) {
  auto* sum = static_cast<T*>(out);
  const auto* left = static_cast<const T*>(a);
  const auto* right = static_cast<const T*>(b);
  for (std::size_t i = 0; i < count; ++i) sum[i] = left[i] + right[i];
}

/// What is summed, and how.
template <class T>
void set_sum(gloo::AllreduceOptions& options, const at::Tensor& tensor) {
  options.setOutput(tensor.mutable_data_ptr<T>(), static_cast<std::size_t>(tensor.numel()));
  options.setReduceFunction(add<T>);
}

bool can_sum(at::ScalarType type) {
  return type == at::kFloat || type == at::kBFloat16 || type == at::kInt;
}

class GlooCommunicator final : public Communicator {
 public:
  explicit GlooCommunicator(std::shared_ptr<gloo::rendezvous::Context> context)
      : context_(std::move(context)), thread_([this] { work(); }) {}

  ~GlooCommunicator() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }
  std::string backend() const override { return "gloo"; }

  void all_reduce(const at::Tensor& flat) override {
    LOCKSTEP_ASSERT(flat.is_contiguous() && can_sum(flat.scalar_type()),
                    "what is reduced is flat, and of float, bfloat16 or int");
    enqueue({.kind = Kind::all_reduce, .tensor = flat});
  }
  void broadcast(const at::Tensor& flat, int root) override {
    LOCKSTEP_ASSERT(flat.is_contiguous(), "what is broadcast is flat");
    enqueue({.kind = Kind::broadcast, .tensor = flat, .root = root});
  }
  void gather(const at::Tensor& flat, const at::Tensor& all, int root) override {
    LOCKSTEP_ASSERT(flat.is_contiguous(), "what is gathered is flat");
    LOCKSTEP_ASSERT(
        rank() != root || (all.is_contiguous() && all.nbytes() == flat.nbytes() * peers()),
        "the root has room for the arrays of all ranks");
    enqueue({.kind = Kind::gather, .tensor = flat, .others = {all}, .root = root});
  }
  void scatter(const std::vector<at::Tensor>& parts, const at::Tensor& flat, int root) override {
    LOCKSTEP_ASSERT(flat.is_contiguous(), "what is scattered is flat");
    LOCKSTEP_ASSERT(rank() != root || parts.size() == peers(), "the root has a part for each rank");
    enqueue({.kind = Kind::scatter, .tensor = flat, .others = parts, .root = root});
  }
  void barrier() override {
    enqueue({.kind = Kind::barrier});
    join();
  }
  void join() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_ == queued_ || failure_; });
    if (failure_) std::rethrow_exception(failure_);
  }
  std::vector<Transfer> take_transfers() override {
    join();
    return std::exchange(transfers_, {});
  }
  std::unique_ptr<FusionLane> make_lane(std::size_t gradients) override {
    return make_core_lane(*this, gradients);
  }

 private:
  enum class Kind { all_reduce, broadcast, gather, scatter, barrier };
  struct Operation {
    Kind kind = Kind::barrier;
    at::Tensor tensor{};
    std::vector<at::Tensor> others{};  ///< the root's side of a gather or scatter
    int root = 0;
  };

  std::size_t peers() const { return static_cast<std::size_t>(context_->size); }
  static CollectiveKind collective(Kind kind);

  void enqueue(Operation operation) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_) std::rethrow_exception(failure_);
      queue_.push_back(std::move(operation));
      ++queued_;
    }
    changed_.notify_all();
  }

  void work();
  void run(const Operation& operation);

  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Operation> queue_;
  std::uint64_t queued_ = 0, done_ = 0;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::vector<Transfer> transfers_;
  std::uint32_t tag_ = 0;
  std::thread thread_;
};

void GlooCommunicator::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const Operation operation = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    const Moment launch = host_now();
    std::exception_ptr failure;
    try {
      run(operation);
    } catch (const std::exception& error) {
      failure = std::make_exception_ptr(
          LostPeers(fmt::format("rank {} lost the others: {}", rank(), error.what())));
    }
    const Moment done = host_now();
    lock.lock();
    if (failure) {
      failure_ = failure;
      changed_.notify_all();
      return;
    }
    if (operation.kind != Kind::barrier) {
      transfers_.push_back({.kind = collective(operation.kind),
                            .bytes = {static_cast<std::int64_t>(operation.tensor.nbytes())},
                            .launch = launch,
                            .done = done});
    }
    ++done_;
    changed_.notify_all();
  }
}

CollectiveKind GlooCommunicator::collective(Kind kind) {
  switch (kind) {
    case Kind::all_reduce:
      return CollectiveKind::all_reduce;
    case Kind::gather:
      return CollectiveKind::gather;
    case Kind::scatter:
      return CollectiveKind::scatter;
    case Kind::broadcast:
    case Kind::barrier:
      break;
  }
  return CollectiveKind::broadcast;
}

char* bytes_of(const at::Tensor& tensor) {
  return static_cast<char*>(tensor.mutable_data_ptr());
}

void GlooCommunicator::run(const Operation& operation) {
  switch (operation.kind) {
    case Kind::all_reduce: {
      gloo::AllreduceOptions options(context_);
      options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
      switch (operation.tensor.scalar_type()) {
        case at::kBFloat16:
          set_sum<at::BFloat16>(options, operation.tensor);
          break;
        case at::kInt:
          set_sum<std::int32_t>(options, operation.tensor);
          break;
        default:
          set_sum<float>(options, operation.tensor);
      }
      options.setTag(tag_++);
      gloo::allreduce(options);
      return;
    }
    case Kind::broadcast: {
      gloo::BroadcastOptions options(context_);
      options.setOutput(bytes_of(operation.tensor), operation.tensor.nbytes());
      options.setRoot(operation.root);
      options.setTag(tag_++);
      gloo::broadcast(options);
      return;
    }
    case Kind::gather: {
      gloo::GatherOptions options(context_);
      options.setInput(bytes_of(operation.tensor), operation.tensor.nbytes());
      if (rank() == operation.root) {
        const at::Tensor& all = operation.others.front();
        options.setOutput(bytes_of(all), all.nbytes());
      }
      options.setRoot(operation.root);
      options.setTag(tag_++);
      gloo::gather(options);
      return;
    }
    case Kind::scatter: {
      gloo::ScatterOptions options(context_);
      if (rank() == operation.root) {
        std::vector<char*> parts;
        for (const at::Tensor& part : operation.others) parts.push_back(bytes_of(part));
        options.setInputs(parts, operation.tensor.nbytes());
      }
      options.setOutput(bytes_of(operation.tensor), operation.tensor.nbytes());
      options.setRoot(operation.root);
      options.setTag(tag_++);
      gloo::scatter(options);
      return;
    }
    case Kind::barrier: {
      gloo::BarrierOptions options(context_);
      options.setTag(tag_++);
      gloo::barrier(options);
      return;
    }
  }
}

class GlooMailbox final : public Mailbox {
 public:
  GlooMailbox(std::unique_ptr<gloo::transport::UnboundBuffer> buffer, int rank, std::uint64_t tag)
      : buffer_(std::move(buffer)), rank_(rank), tag_(tag) {}

  void send(int to) override {
    guarded([&] { buffer_->send(to, tag_); });
  }
  void wait_sent() override {
    guarded([&] { buffer_->waitSend(kForever); });
  }
  void receive(int from) override {
    guarded([&] { buffer_->recv(from, tag_); });
  }
  bool wait_received() override {
    bool received = false;
    guarded([&] { received = buffer_->waitRecv(kForever); });
    return received;
  }
  void abort() override { buffer_->abortWaitRecv(); }

 private:
  static constexpr std::chrono::milliseconds kForever = std::chrono::hours(24 * 365);

  template <class F>
  void guarded(F what) {
    try {
      what();
    } catch (const std::exception& error) {
      throw LostPeers(fmt::format("rank {} lost the others: {}", rank_, error.what()));
    }
  }

  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
  int rank_;
  std::uint64_t tag_;
};

class GlooPointToPoint final : public PointToPoint {
 public:
  explicit GlooPointToPoint(std::shared_ptr<gloo::rendezvous::Context> context)
      : context_(std::move(context)) {}

  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }
  std::unique_ptr<Mailbox> mailbox(void* memory, std::size_t bytes, std::uint64_t tag) override {
    return std::make_unique<GlooMailbox>(context_->createUnboundBuffer(memory, bytes), rank(), tag);
  }

 private:
  std::shared_ptr<gloo::rendezvous::Context> context_;
};

/// `group`: of what, in the store.
std::shared_ptr<gloo::rendezvous::Context> connect_group(const WorkerEnvironment& environment,
                                                         int size, const std::string& group,
                                                         const std::shared_ptr<Store>& store,
                                                         std::chrono::milliseconds timeout) {
  LOCKSTEP_ASSERT(environment.rank < size, "only members connect");
  try {
    auto transport = make_transport(environment);
    auto context = std::make_shared<gloo::rendezvous::Context>(environment.rank, size);
    context->setTimeout(timeout);
    GlooStore addresses(store, fmt::format("{}/{}/", group, size), timeout);
    context->connectFullMesh(addresses, transport);
    return context;
  } catch (const RunError&) {
    throw;
  } catch (const std::exception& error) {
    throw LostPeers(
        fmt::format("rank {} cannot connect to the others: {}", environment.rank, error.what()));
  }
}

}  // namespace

std::unique_ptr<Communicator> make_gloo(const WorkerEnvironment& environment, int size,
                                        const std::shared_ptr<Store>& store,
                                        std::chrono::milliseconds timeout) {
  return std::make_unique<GlooCommunicator>(
      connect_group(environment, size, "gloo", store, timeout));
}

std::unique_ptr<PointToPoint> make_point_to_point(const WorkerEnvironment& environment,
                                                  const std::shared_ptr<Store>& store,
                                                  std::chrono::milliseconds timeout) {
  return std::make_unique<GlooPointToPoint>(
      connect_group(environment, environment.world_size, "messages", store, timeout));
}

std::string gloo_version() {
  return fmt::format("{}.{}.{}", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
}

}  // namespace lockstep::runner
