// nn.DataParallel with replicas on the cores of this host: what it computes is checked here, what
// it takes is a matter for GPUs.
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <atomic>
#include <set>
#include <thread>

#include "runner/data/loader.h"
#include "runner/measure/parity.h"
#include "runner/measure/train.h"
#include "runner/models/zoo.h"
#include "runner/strategies/replica_threads.h"
#include "sim/core/error.h"
#include "sim/workload/buckets.h"
#include "tests/catch.h"

namespace lockstep::runner {
namespace {

constexpr std::uint64_t kSeed = 11;

TEST_CASE("data_parallel trains as one device that runs the shares one after another") {
  const auto device = make_cpu_device(1);
  for (const int replicas : {1, 2, 3}) {
    const auto devices = make_cpu_replicas(replicas);
    INFO(replicas << " replicas");
    const Parity parity = check_data_parallel("small_cnn", 4 * replicas, kSeed, *devices, *device);
    CHECK(parity.steps == 3);
    CHECK(parity.relative_l2 <= kParityBound);
  }
}

TEST_CASE("An uneven share weighs by its samples") {
  const auto device = make_cpu_device(1);
  const auto devices = make_cpu_replicas(3);
  // Shares of 4, 4 and 2.
  CHECK(check_data_parallel("small_cnn", 10, kSeed, *devices, *device).relative_l2 <= kParityBound);
}

TEST_CASE("Parameters in several chunks, some of one parameter alone") {
  const auto device = make_cpu_device(1);
  const auto devices = make_cpu_replicas(2);
  CHECK(check_data_parallel("vgg11", 4, kSeed, *devices, *device).relative_l2 <= kParityBound);

  Model model = make_model("vgg11", c10::kCPU, kSeed);
  const auto strategy = make_data_parallel(model, *devices, *device);
  Trainer trainer(model, *strategy);
  trainer.step(random_batch(model, 4, kSeed, c10::kCPU));
  std::vector<Gradient> gradients;
  for (const at::Tensor& parameter : model.parameters()) {
    gradients.push_back({.bytes = {static_cast<std::int64_t>(parameter.nbytes())}});
  }
  const std::vector<Bucket> chunks = take_chunks(gradients, kChunkLimit);
  const std::vector<BucketMoments> moments = strategy->take_buckets();
  REQUIRE(moments.size() == chunks.size());
  REQUIRE(chunks.size() > 2);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    Bytes bytes;
    for (const int member : chunks[i]) bytes += gradients[static_cast<std::size_t>(member)].bytes;
    CHECK(moments[i].bytes == bytes);
    CHECK(moments[i].ready <= moments[i].done);
  }
}

TEST_CASE("A batch with too few samples is refused") {
  const auto device = make_cpu_device(1);
  const auto devices = make_cpu_replicas(3);
  Model model = make_model("small_cnn", c10::kCPU, kSeed);
  const auto strategy = make_data_parallel(model, *devices, *device);
  Trainer trainer(model, *strategy);
  CHECK_THROWS_WITH(trainer.step(random_batch(model, 2, kSeed, c10::kCPU)),
                    Contains("2 samples make 2 shares, for 3 devices"));
  CHECK_THROWS_AS(make_strategy({.kind = "data_parallel"}, model, nullptr, *device), RunError);
}

TEST_CASE("What replicas exchange is what they hold") {
  const auto devices = make_cpu_replicas(3);
  const at::Tensor whole = at::arange(7, at::kFloat);
  const std::vector<at::Tensor> shares = devices->scatter(whole);
  REQUIRE(shares.size() == 3);
  CHECK(shares[0].size(0) == 3);
  CHECK(shares[2].size(0) == 1);
  CHECK(devices->gather(shares).equal(whole));

  std::vector<at::Tensor> copies{at::zeros({7}), at::zeros({7})};
  devices->broadcast(whole, copies);
  CHECK(copies[1].equal(whole));
  at::Tensor sum = at::zeros({7});
  devices->reduce({whole, copies[0], copies[1]}, sum);
  CHECK(sum.equal(whole.mul(3)));
}

TEST_CASE("Every replica has a thread of its own, and a failure comes out when all have ended") {
  const auto devices = make_cpu_replicas(3);
  ReplicaThreads threads(*devices);
  std::vector<std::thread::id> ids(3);
  const auto note = [&ids](int device) {
    ids[static_cast<std::size_t>(device)] = std::this_thread::get_id();
  };
  threads.run(note);
  CHECK(ids[0] == std::this_thread::get_id());
  CHECK(std::set(ids.begin(), ids.end()).size() == 3);
  const std::vector<std::thread::id> before = ids;
  threads.run(note);
  CHECK(ids == before);

  std::atomic<int> ended = 0;
  const auto fail = [&ended](int device) {
    ++ended;
    if (device > 0) throw RunError("device " + std::to_string(device));
  };
  CHECK_THROWS_WITH(threads.run(fail), "device 1");
  CHECK(ended == 3);
  threads.run(note);
  CHECK(ids == before);
}

TEST_CASE("Autocast of the calling thread is that of all") {
  const auto devices = make_cpu_replicas(2);
  ReplicaThreads threads(*devices);
  bool on[2] = {};
  const auto look = [&on](int device) { on[device] = at::autocast::is_autocast_enabled(at::kCPU); };
  at::autocast::set_autocast_enabled(at::kCPU, true);
  threads.run(look);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  CHECK((on[0] && on[1]));
  threads.run(look);
  CHECK_FALSE((on[0] || on[1]));
}

TEST_CASE("A replica of a model shares nothing with it") {
  Model model = make_model("small_cnn", c10::kCPU, kSeed);
  Model replica = model.replica(c10::kCPU);
  REQUIRE(replica.parameters().size() == model.parameters().size());
  REQUIRE(replica.flat_buffers().size() == 2);
  const Batch batch = random_batch(model, 4, kSeed, c10::kCPU);
  const at::Tensor before = model.loss(batch.input, batch.target);
  CHECK(replica.loss(batch.input, batch.target).equal(before));
  {
    const at::NoGradGuard no_grad;
    for (const at::Tensor& parameter : replica.parameters()) parameter.mul_(2);
    for (const at::Tensor& buffer : replica.flat_buffers()) buffer.zero_();
  }
  CHECK(model.loss(batch.input, batch.target).equal(before));
  CHECK(model.flat_buffers()[1][0].item<std::int64_t>() == 2);
  CHECK_FALSE(replica.loss(batch.input, batch.target).equal(before));
}

}  // namespace
}  // namespace lockstep::runner
