// nn.DataParallel: one process whose first thread drives what all devices exchange.
#include <string>
#include <utility>
#include <vector>

#include "sim/analysis/breakdown.h"
#include "sim/analysis/buckets.h"
#include "sim/core/engine.h"
#include "sim/core/symmetry.h"
#include "sim/workload/strategy.h"
#include "tests/catch.h"
#include "tests/synthetic.h"
#include "tests/workload/run_steps.h"

namespace lockstep {
namespace {

/// two_layers() and a loss: forward 4 us of the host and 6 us of the device, backward 4 and 8.
Profile with_loss() {
  Profile profile = two_layers();
  profile.layers.push_back(layer("loss", "loss", cost(4, 6), cost(4, 8), {}));
  number_backward(profile);
  return profile;
}

/// On GPUs: copies of 8 MiB take 5 us of the host and 40 us, a scatter 12 us, a broadcast 60 us, a
/// gather 14 us, a reduce 80 us, each 2 us of the host for every device; no interference.
Workload gpu_workload(std::uint32_t workers, const Profile& profile = with_loss()) {
  Workload workload;
  workload.profiles = {profile, profile};
  workload.profile_of_worker.assign(workers, 0);
  workload.profile_of_worker[0] = 1;
  workload.root_profile = 1;
  workload.strategy.kind = "data_parallel";
  workload.bucket_in = {"bucket_in",
                        {{Bytes{1 << 20}, 1, us(40), us(5)}, {Bytes{64 << 20}, 2, us(40), us(5)}}};
  workload.collective = [workers](CollectiveKind kind, Bytes bytes) {
    CollectiveCost result;
    result.collective.kind = kind;
    result.collective.bytes = bytes;
    result.collective.duration = us(kind == CollectiveKind::scatter     ? 12
                                    : kind == CollectiveKind::broadcast ? 60
                                    : kind == CollectiveKind::gather    ? 14
                                                                        : 80);
    result.host = us(2 * std::int64_t{workers});
    return result;
  };
  return workload;
}

Time whole(const Breakdown& step) {
  return step.compute + step.exposed + step.waiting + step.host + step.input + step.idle;
}

TEST_CASE("data_parallel on two GPUs: nothing that is exchanged is hidden", "[data_parallel]") {
  // Main thread: scatter 4, copy 9, broadcast 13, a 23, b 33, gather 37, loss 41 and 45, scatter
  // 49, b' 59, a' 69, copies 79, reduce 83, optimizer 93, then it waits for device 0. Device 0:
  // scatter 4-16, copy 16-56, broadcast 56-116, a and b -316, gather -330, loss of both -342
  // and -358, scatter -370, b' and a' -770, copy -810, reduce -890, optimizer -940.
  const TaskGraph graph = compile(gpu_workload(2), Phase::steady);
  const EngineResult result = run_steps(graph, 3);
  CHECK(result.step_end[0] == std::vector<Time>{us(940), us(1880), us(2820)});
  CHECK(result.step_end[1] == std::vector<Time>{us(890), us(1830), us(2770)});

  const Breakdown root = break_down(graph, result, 0)[1].breakdown;
  CHECK(root.compute == us(40 + 200 + 28 + 400 + 40 + 50));
  CHECK(root.host == us(9));  // the copy is issued while the scatter is under way
  CHECK(root.exposed == us(12 + 60 + 14 + 12 + 80 - 5));
  CHECK(root.waiting + root.input + root.idle + root.hidden == Time{});
  CHECK(whole(root) == us(940));
  CHECK(break_down(graph, result, 0)[2].host_busy == us(93));

  // The other thread waits for the main thread's calls: it has launched the scatter at 894, which
  // begins at 944; the broadcast waits for device 0's copy, the scatter for its loss.
  const Breakdown other = break_down(graph, result, 1)[1].breakdown;
  CHECK(other.compute == us(200 + 400 + 40));
  CHECK(other.waiting == us(31 + 40 + 28));
  CHECK(whole(other) == us(940));
  CHECK(break_down(graph, result, 1)[2].host_busy == us(93));

  const std::vector<BucketTimes> buckets = bucket_times(graph, result, 0);
  REQUIRE(buckets.size() == 1);
  CHECK(buckets[0].bytes == Bytes{8 << 20});
  CHECK(buckets[0].ready == us(770));
  CHECK(buckets[0].launch == us(810));
  CHECK(buckets[0].done == us(890));
}

TEST_CASE("data_parallel on three GPUs launches each exchange three times", "[data_parallel]") {
  // The first scatter is launched at 6, the loss is of three: device-bound.
  const TaskGraph graph = compile(gpu_workload(3), Phase::steady);
  const EngineResult result = run_steps(graph, 3);
  CHECK(result.step_end[0] == std::vector<Time>{us(956), us(1912), us(2868)});
  CHECK(result.step_end[2] == std::vector<Time>{us(906), us(1862), us(2818)});
  // Scatter 6, copy 11, broadcast 17, a 27, b 37, gather 43, loss 51, scatter 57, b' and a' 77,
  // copies 92, reduce 98, optimizer 108.
  CHECK(break_down(graph, result, 0)[1].host_busy == us(108));
  for (std::uint32_t worker = 0; worker < 3; ++worker) {
    CHECK(whole(break_down(graph, result, worker)[1].breakdown) == us(956));
  }
}

TEST_CASE("free-running, the main thread goes on to the next step", "[data_parallel]") {
  // 93 us of the host, 936 of the device from the second step on: it never waits for a launch.
  Workload workload = gpu_workload(2);
  workload.sync = Sync::none;
  const EngineResult result = run_steps(compile(workload, Phase::steady), 3);
  CHECK(result.step_end[0] == std::vector<Time>{us(940), us(1876), us(2812)});
}

TEST_CASE("Python's lock makes the threads take turns in forward only", "[data_parallel]") {
  // A host that needs 300 us for a layer's forward: a 13-313, b -613; device 0 ends b at 713, and
  // from there as above: 14 + 12 + 16 + 12 + 400 + 40 + 80 + 50.
  Profile profile = with_loss();
  profile.layers[0].forward.host = profile.layers[1].forward.host = us(300);
  Workload workload = gpu_workload(2, profile);
  CHECK(run_steps(compile(workload, Phase::steady), 3).step_end[0][0] == us(713 + 624));
  // Two threads that take turns need 600 us each for a layer.
  workload.strategy.gil = true;
  CHECK(run_steps(compile(workload, Phase::steady), 3).step_end[0][0] == us(1313 + 624));
}

TEST_CASE("parameters and gradients travel in chunks by two rules", "[data_parallel]") {
  // 6, 6 and 1 MiB: a chunk goes out once it holds 10 MiB; one comes back before it exceeds them.
  constexpr std::int64_t kMebibyte = 1 << 20;
  Profile profile = with_norm();
  for (std::size_t i = 0; i < 3; ++i) {
    profile.layers[i].parameters[0].bytes = Bytes{(i < 2 ? 6 : 1) * kMebibyte};
  }
  const TaskGraph graph = compile(gpu_workload(2, profile), Phase::steady);
  std::vector<std::pair<CollectiveKind, std::int64_t>> exchanges;
  for (const Collective& one : graph.collectives) exchanges.emplace_back(one.kind, one.bytes.count);
  using enum CollectiveKind;
  CHECK(exchanges == std::vector<std::pair<CollectiveKind, std::int64_t>>{
                         {scatter, 0},
                         {broadcast, 12 * kMebibyte},
                         {broadcast, kMebibyte},
                         {broadcast, 1024},  // statistics of the norm, and how many there were
                         {broadcast, 8},
                         {gather, 0},
                         {scatter, 0},
                         {reduce, 6 * kMebibyte},
                         {reduce, 7 * kMebibyte}});
}

TEST_CASE("the loader's batch comes from the host, not from device 0", "[data_parallel]") {
  Workload workload = gpu_workload(2);
  workload.input = true;
  for (Profile& profile : workload.profiles) profile.input_copy = us(12);
  const TaskGraph graph = compile(workload, Phase::steady);
  CHECK(graph.collectives.front().kind == CollectiveKind::broadcast);
  // Copied at 12, where the scatter, which had to be launched, ended at 16.
  CHECK(run_steps(graph, 3).step_end[0][0] == us(936));
}

TEST_CASE("one GPU stands for all that only follow", "[data_parallel]") {
  const TaskGraph graph = compile(gpu_workload(5), Phase::steady);
  const ReducedRun reduced = reduce_symmetric(graph, {.iterations = 3, .noise = {}});
  CHECK(reduced.graph.program_of_worker.size() == 2);
  const EngineResult full = run_steps(graph, 3);
  const EngineResult few = run(reduced.graph, reduced.options);
  for (std::size_t worker = 0; worker < 5; ++worker) {
    CHECK(full.step_end[worker] == few.step_end[reduced.class_of_worker[worker]]);
  }
}

TEST_CASE("a slow GPU holds up the gather and the reduction", "[data_parallel]") {
  // Device 1 takes 1.5 times as long: a and b end at 116 + 300, the scatter of output gradients at
  // 416 + 14 + 28 + 12 = 470, backward and copy take 660: 1130; reduce 1210, optimizer 1260.
  const TaskGraph graph = compile(gpu_workload(2), Phase::steady);
  const EngineResult result = run_steps(graph, 3, {{}, {.host = {}, .device = Factor::of(1.5)}});
  CHECK(result.step_end[0][0] == us(1260));
  CHECK(result.step_end[1][0] == us(1210));
}

}  // namespace
}  // namespace lockstep
