// DDP's options: several passes a step, unused parameters, compressed gradients.
#include <vector>

#include "sim/core/engine.h"
#include "sim/workload/strategy.h"
#include "tests/catch.h"
#include "tests/synthetic.h"
#include "tests/workload/on_cores.h"
#include "tests/workload/run_steps.h"

namespace lockstep {
namespace {

/// two_layers() on cores: copies of 4 MiB take 20 us, additions 30 us, an all-reduce 150 us, and
/// 10 us below 1 KiB.
Workload core_workload(std::uint32_t workers) {
  Workload workload = on_cores("ddp", workers);
  workload.bucket_in = {"bucket_in",
                        {{Bytes{4 << 20}, 1, us(20), {}}, {Bytes{8 << 20}, 2, us(40), {}}}};
  workload.add = {"add", {{Bytes{4 << 20}, 1, us(30), {}}, {Bytes{8 << 20}, 2, us(60), {}}}};
  return workload;
}

std::vector<Bytes> sent(const TaskGraph& graph) {
  std::vector<Bytes> bytes;
  for (const Collective& collective : graph.collectives) bytes.push_back(collective.bytes);
  return bytes;
}

}  // namespace

TEST_CASE("with no_sync the passes before the last reduce nothing", "[ddp]") {
  // First pass: until 600. Second: b' until 1000, b is added to what is there until 1030, copied
  // until 1050 and reduced until 1200; a' until 1250, added 1280, copied 1300, reduced 1450.
  // Optimizer 1500.
  Workload workload = core_workload(2);
  workload.strategy.accumulate = 2;
  workload.strategy.no_sync = true;
  const TaskGraph graph = compile(workload, Phase::steady);
  CHECK(sent(graph) == std::vector<Bytes>{{4 << 20}, {4 << 20}});
  const EngineResult result = run_steps(graph, 2);
  CHECK(result.step_end[0] == std::vector<Time>{us(1500), us(3000)});
}

TEST_CASE("without no_sync every pass reduces all", "[ddp]") {
  // b' 400, copied 420, reduced 570; a' 620, copied 640, reduced 790; 8 MiB added until 850. Twice,
  // on three workers as on two; optimizer 1750.
  Workload workload = core_workload(3);
  workload.strategy.accumulate = 2;
  const TaskGraph graph = compile(workload, Phase::steady);
  CHECK(sent(graph) == std::vector<Bytes>(4, Bytes{4 << 20}));
  CHECK(run_steps(graph, 2).step_end[2] == std::vector<Time>{us(1750), us(3500)});
}

TEST_CASE("buffers come once a step with no_sync, else in every pass", "[ddp]") {
  Workload workload = core_workload(2);
  workload.profiles = {with_norm()};
  workload.strategy.accumulate = 3;
  const auto broadcasts = [&workload] {
    return std::ranges::count(compile(workload, Phase::steady).collectives,
                              CollectiveKind::broadcast, &Collective::kind);
  };
  CHECK(broadcasts() == 2 * 3);  // floats and counters
  workload.strategy.no_sync = true;
  CHECK(broadcasts() == 2);
}

TEST_CASE("a single worker takes as many passes", "[single]") {
  // Two passes of 600 us, in the second 30 us for each layer's gradient; optimizer 50.
  Workload workload = core_workload(1);
  workload.strategy.kind = "single";
  workload.strategy.accumulate = 2;
  CHECK(run_steps(compile(workload, Phase::steady), 1).step_end[0][0] == us(1310));
}

TEST_CASE("outside its layers a pass takes what a step takes", "[single]") {
  Workload workload = core_workload(1);
  workload.strategy.kind = "single";
  workload.strategy.accumulate = 3;
  const auto step = [&workload] {
    return run_steps(compile(workload, Phase::steady), 1).step_end[0][0];
  };
  const Time without = step();
  workload.profiles[0].step_overhead.device = us(7);
  CHECK(step() == without + us(3 * 7));
  // A recorded step is launched once, whatever it holds.
  workload.cpu = false;
  workload.graph = true;
  workload.profiles[0].step_overhead.host = us(5);
  const TaskGraph graph = compile(workload, Phase::steady);
  CHECK(std::ranges::count(graph.programs[0].tasks, Lane::host, &Task::lane) == 2);
}

TEST_CASE("with unused parameters looked for, buckets keep the parameters' order, reversed",
          "[ddp]") {
  // In the order of the parameters, a (4 MiB) closes the first bucket, of 1 MiB; n and b share the
  // second. Reversed, theirs is the first. A map of three int32 follows. b' ends at 420,
  // n' at 460, copied 480, reduced 630; a' 680, copied 700, reduced 850, map 860, optimizer 910.
  Workload workload = core_workload(2);
  workload.profiles = {with_norm()};
  workload.profiles[0].gradient_hook = {};
  workload.strategy.broadcast_buffers = false;
  workload.strategy.find_unused_parameters = true;
  workload.bucket_in.points.back() = {Bytes{(4 << 20) + 1024}, 2, us(20), {}};
  for (const Phase phase : {Phase::first, Phase::steady}) {
    const TaskGraph graph = compile(workload, phase);
    CHECK(sent(graph) == std::vector<Bytes>{{(4 << 20) + 1024}, {4 << 20}, {12}});
    CHECK(run_steps(graph, 1).step_end[1][0] == us(910));
  }
}

TEST_CASE("compressed gradients are half the bytes, and made whole again", "[ddp]") {
  // As without until both are reduced at 790; then two copies, and the optimizer: 880.
  Workload workload = core_workload(2);
  workload.strategy.compression = Compression::bf16;
  const TaskGraph graph = compile(workload, Phase::steady);
  CHECK(sent(graph) == std::vector<Bytes>{{2 << 20}, {2 << 20}});
  CHECK(run_steps(graph, 1).step_end[0][0] == us(880));
}

}  // namespace lockstep
