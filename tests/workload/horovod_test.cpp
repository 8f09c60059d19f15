#include <numeric>
#include <random>
#include <vector>

#include "sim/analysis/breakdown.h"
#include "sim/analysis/buckets.h"
#include "sim/core/engine.h"
#include "sim/workload/fusion.h"
#include "sim/workload/strategy.h"
#include "tests/catch.h"
#include "tests/synthetic.h"
#include "tests/workload/on_cores.h"
#include "tests/workload/run_steps.h"

namespace lockstep {
namespace {

/// two_layers() on cores: an all-reduce takes 150 us, a negotiation 10 us, a copy of 4 MiB 20 us.
/// Cycles of 100 us: idle ones take a tenth of a core, so that forward takes 110 us a layer and
/// backward 220.
Workload core_workload(std::uint32_t workers) {
  Workload workload = on_cores("horovod", workers);
  workload.strategy.cycle_time = us(100);
  workload.bucket_in = {"bucket_in",
                        {{Bytes{4 << 20}, 1, us(20), us(5)}, {Bytes{8 << 20}, 2, us(40), us(5)}}};
  return workload;
}

Workload gpu_workload(std::uint32_t workers) {
  Workload workload = core_workload(workers);
  workload.cpu = false;
  workload.profiles = {two_layers()};
  workload.strategy.cycle_time = us(25);
  workload.control_round = us(5);
  return workload;
}

}  // namespace

TEST_CASE("Horovod on two workers on cores: each gradient in the cycle after it", "[horovod]") {
  // Compute: a 0-110, b 110-220, b' 220-440, a' 440-660. Cycles begin at 0, 100, ...; that at 500
  // negotiates b until 510 and reduces it until 660. The next begins at once, finds a, negotiates
  // until 670, reduces until 820. Optimizer 820-870.
  const TaskGraph graph = compile(core_workload(2), Phase::steady);
  const EngineResult result = run_steps(graph, 3);
  for (const std::vector<Time>& worker : result.step_end) {
    CHECK(worker == std::vector<Time>{us(870), us(1740), us(2610)});
  }
  const std::vector<BucketTimes> groups = bucket_times(graph, result, 0);
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].bytes == Bytes{4 << 20});
  CHECK(groups[0].ready == us(440));
  CHECK(groups[0].launch == us(510));
  CHECK(groups[0].done == us(660));
  CHECK(groups[1].ready == us(660));
  CHECK(groups[1].launch == us(670));
  CHECK(groups[1].done == us(820));
  const Breakdown step = break_down(graph, result, 0)[1].breakdown;
  CHECK(step.compute == us(660 + 50));
  CHECK(step.hidden == us(10 + 150));
  CHECK(step.exposed == us(10 + 150));
}

TEST_CASE("a long cycle fuses both gradients, which are copied in and out", "[horovod]") {
  // Cycles of 1000 us: idle ones take a hundredth, a' ends at 606. The cycle at 1000 negotiates
  // until 1010, copies in until 1050, reduces until 1200, copies out until 1240; optimizer 1290.
  Workload workload = core_workload(2);
  workload.strategy.cycle_time = us(1000);
  const EngineResult result = run_steps(compile(workload, Phase::steady), 2);
  CHECK(result.step_end[1] == std::vector<Time>{us(1290), us(2580)});
  // Without fusion both are reduced one after the other, and not copied: 1010-1160-1310, 1360.
  workload.strategy.fusion_threshold = Bytes{0};
  const EngineResult alone = run_steps(compile(workload, Phase::steady), 2);
  CHECK(alone.step_end[0] == std::vector<Time>{us(1360), us(2720)});
}

TEST_CASE("a first step gathers the names at rank 0 and broadcasts its answer", "[horovod]") {
  // Each negotiation is three collectives of 10 us. b: cycle at 500, 530-680; a: 680, 710-860;
  // optimizer 910.
  const TaskGraph graph = compile(core_workload(2), Phase::first);
  REQUIRE(graph.collectives.size() == 8);
  CHECK(graph.collectives[0].kind == CollectiveKind::all_reduce);
  CHECK(graph.collectives[0].bytes == Bytes{3 * 4});
  CHECK(graph.collectives[1].kind == CollectiveKind::gather);
  CHECK(graph.collectives[1].bytes == Bytes{3 * 8});
  CHECK(graph.collectives[2].kind == CollectiveKind::broadcast);
  CHECK(run_steps(graph, 1).step_end[0][0] == us(910));
}

TEST_CASE("three workers reduce a gradient when the slowest has it", "[horovod]") {
  // Worker 1 takes twice as long: b' ends at 880, a' at 1320. The cycle at 900 reduces b, 910-1060.
  // From 1060 on a cycle begins every 100 us: that of 1360 reduces a, 1370-1520. Worker 1's
  // optimizer takes 100 us. The others begin their next step 50 us before it, and wait in the first
  // negotiation.
  Workload workload = core_workload(3);
  const Factor slow = Factor::of(2);
  workload.slowdowns = {{}, {slow, slow}, {}};
  const TaskGraph graph = compile(workload, Phase::steady);
  const EngineResult result = run_steps(graph, 3, workload.slowdowns);
  CHECK(result.step_end[1] == std::vector<Time>{us(1620), us(3240), us(4860)});
  for (const std::size_t fast : {0U, 2U}) {
    CHECK(result.step_end[fast] == std::vector<Time>{us(1570), us(3190), us(4810)});
  }
}

TEST_CASE("on GPUs what was issued in a cycle is reduced together", "[horovod]") {
  // Host: a 10, b 20, b' 30, a' 42: the cycle at 50 finds both, agrees until 55, and waits for a',
  // which ends at 610. Copy in 650, reduce 800, copy out 840, optimizer 890: nothing is hidden.
  Workload workload = gpu_workload(2);
  const TaskGraph graph = compile(workload, Phase::steady);
  const EngineResult result = run_steps(graph, 2);
  CHECK(result.step_end[0] == std::vector<Time>{us(890), us(1780)});
  CHECK(break_down(graph, result, 0)[1].breakdown.hidden == Time{});
  // Without fusion b is reduced beside a': 410-560, a 610-760, optimizer 810.
  workload.strategy.fusion_threshold = Bytes{0};
  const TaskGraph alone = compile(workload, Phase::steady);
  const EngineResult hides = run_steps(alone, 2);
  CHECK(hides.step_end[0] == std::vector<Time>{us(810), us(1620)});
  CHECK(break_down(alone, hides, 0)[1].breakdown.hidden == us(150));
}

TEST_CASE("whatever the options, every gradient is reduced once, when it is there", "[horovod]") {
  std::mt19937 random(20240611);
  const auto draw = [&random](int least, int most) {
    return std::uniform_int_distribution(least, most)(random);
  };
  for (int round = 0; round < 40; ++round) {
    Workload workload = core_workload(2);
    Profile& profile = workload.profiles[0];
    profile.layers.clear();
    for (int i = draw(2, 20); i > 0; --i) {
      profile.layers.push_back(layer("layer " + std::to_string(i), "conv", cost(0, draw(10, 300)),
                                     cost(0, draw(10, 300)), Bytes{draw(256, 1 << 20) * 4}));
    }
    number_backward(profile);
    workload.strategy.cycle_time = us(draw(20, 500));
    workload.strategy.fusion_threshold = Bytes{draw(0, 4 << 20)};
    workload.interference.transferring = 1.3;
    const TaskGraph graph = compile(workload, Phase::steady);
    const EngineResult result = run_steps(graph, 3);
    Bytes reduced;
    for (const BucketTimes& group : bucket_times(graph, result, 0)) {
      reduced += group.bytes;
      REQUIRE(group.launch >= group.ready);
    }
    REQUIRE(reduced == parameter_bytes(profile));
    REQUIRE(compile(workload, Phase::steady).programs == graph.programs);
  }
}

TEST_CASE("on GPUs the optimizer is issued when the thread has launched everything", "[horovod]") {
  // As above, with an all-reduce of no time and an optimizer that takes the host 100 us: the thread
  // launches at 610 when a' ends, and the host is done at 710, with 42 us of issuing long over. The
  // device has copied in and out by 690.
  Workload workload = gpu_workload(2);
  workload.collective = [](CollectiveKind kind, Bytes bytes) {
    return CollectiveCost{.collective = {.kind = kind, .bytes = bytes}, .host = {}};
  };
  workload.profiles[0].optimizer.host = us(100);
  workload.sync = Sync::none;
  const EngineResult result = run_steps(compile(workload, Phase::steady), 2);
  CHECK(result.step_end[0].front() == us(610 + 100 + 50));
}

}  // namespace lockstep
