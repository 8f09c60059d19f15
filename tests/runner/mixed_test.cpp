// GPUs and a worker on cores share a batch: here devices of the host stand in for GPUs, with all
// that passes between the workers as it is.
#include "runner/communicators/mixed.h"

#include <ATen/ops/full.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "runner/communicators/lost_peers.h"
#include "runner/measure/mixed_cores.h"
#include "runner/measure/parity.h"
#include "tests/catch.h"
#include "tests/runner/ranks.h"

namespace lockstep::runner {
namespace {

using Body = std::function<void(MixedCommunicator&, Device&)>;

WorkerEnvironment environment_of(int rank, int size) {
  return {.rank = rank,
          .world_size = size,
          .local_rank = rank,
          .local_size = size,
          .master_address = "127.0.0.1"};
}

/// `gpus` workers that take part as GPUs do, and one on cores: threads of this process.
void on_mixed_ranks(int gpus, const Body& body) {
  const auto store = std::make_shared<testing::SharedStore>();
  const auto of_gpus = std::make_shared<testing::SharedStore>();
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(gpus) + 1);
  const auto work = [&](int rank) {
    const auto device = make_cpu_device(1);
    std::unique_ptr<Communicator> among;
    if (rank < gpus && gpus > 1) among = make_gloo(environment_of(rank, gpus), gpus, of_gpus);
    const auto copies = make_cpu_copies();
    MixedCommunicator all(make_gloo(environment_of(rank, gpus + 1), gpus + 1, store), among.get(),
                          *copies, *store);
    body(all, *device);
    all.barrier();
  };
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank <= gpus; ++rank) {
      ranks.emplace_back([&, rank] {
        try {
          work(rank);
        } catch (...) {
          failures[static_cast<std::size_t>(rank)] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

double parity_of(const std::vector<int>& split, bool on_host) {
  StrategyOptions options;
  options.kind = "heterogeneous";
  options.split = split;
  options.combine_on_host = on_host;
  double worst = 0;
  on_mixed_ranks(static_cast<int>(split.size()) - 1, [&](MixedCommunicator& all, Device& device) {
    const Parity parity = check_parity("small_cnn", options, 4, 1, all, device);
    if (all.on_cores()) worst = parity.relative_l2;
  });
  return worst;
}

}  // namespace

TEST_CASE("GPUs and cores train as one device does, wherever gradients are added") {
  for (const bool on_host : {false, true}) {
    INFO(on_host);
    CHECK(parity_of({6, 2}, on_host) <= kParityBound);
    CHECK(parity_of({5, 4, 3}, on_host) <= kParityBound);
  }
}

TEST_CASE("Unlike workers share memory, and see the same numbers") {
  on_mixed_ranks(2, [](MixedCommunicator& all, Device&) {
    const SharedMemory memory = all.share(1 << 20);
    std::byte* mine = memory.bytes().data() + all.rank();
    CHECK(*mine == std::byte{0});
    *mine = std::byte{7};
    all.barrier();
    for (int rank = 0; rank < all.size(); ++rank) CHECK(memory.bytes()[rank] == std::byte{7});
    const at::Tensor sum = at::full({3}, all.rank() + 1.0);
    all.all_reduce(sum);
    CHECK(sum[2].item<float>() == 6);
    all.broadcast(sum.fill_(all.rank()), 1);
    CHECK(sum[0].item<float>() == 1);
    CHECK(all.on_cores() == (all.rank() == 2));
    CHECK((all.gpus() == nullptr) == all.on_cores());
  });
}

TEST_CASE("Another process sees shared memory by its path, and counts in it") {
  constexpr std::size_t kBytes = 1 << 16;
  const SharedMemory memory = SharedMemory::create(kBytes);
  auto* counter = new (memory.bytes().data()) Counter;
  const pid_t child = fork();
  if (child == 0) {
    try {
      const SharedMemory same = SharedMemory::open(memory.path(), kBytes);
      same.bytes()[kBytes - 1] = std::byte{5};
      reinterpret_cast<Counter*>(same.bytes().data())->add_one();
      _exit(0);
    } catch (...) {
      _exit(1);
    }
  }
  counter->wait_for(1, "count", std::chrono::seconds(20));
  CHECK(memory.bytes()[kBytes - 1] == std::byte{5});
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("Who waits for a gradient that does not come gives up") {
  Counter counter;
  counter.add_one();
  counter.wait_for(1, "gradient", std::chrono::seconds(60));
  CHECK_THROWS_AS(counter.wait_for(2, "gradient", std::chrono::milliseconds(20)), LostPeers);
  CHECK_THROWS_AS(SharedMemory::open("/proc/self/fd/999999", 4096), RunError);
}

TEST_CASE("Cores are shared out among workers that launch and one that computes") {
  const std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(mixed_cores(all, 1, 0, 0) == std::vector<int>{0, 1});
  CHECK(mixed_cores(all, 1, 1, 0) == std::vector<int>{2, 3, 4, 5, 6, 7});
  CHECK(mixed_cores(all, 1, 1, 4) == std::vector<int>{2, 3, 4, 5});
  CHECK(mixed_cores(all, 2, 1, 0) == std::vector<int>{2, 3});
  CHECK(mixed_cores(all, 4, 3, 0) == std::vector<int>{3});
  CHECK(mixed_cores(all, 4, 4, 0) == std::vector<int>{4, 5, 6, 7});
  CHECK(mixed_cores({3, 5}, 1, 1, 0) == std::vector<int>{5});
  CHECK_THROWS_AS(mixed_cores({3}, 1, 1, 0), InputError);
  CHECK_THROWS_AS(mixed_cores(all, 1, 1, 7), InputError);
}

}  // namespace lockstep::runner
