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

/// two_layers() on a GPU: copies 5 us of the host and 20 us of the device, all-reduces 10 us of the
/// host and 150 us, no interference.
Workload gpu_workload(std::uint32_t workers) {
  Workload workload;
  workload.profiles = {two_layers()};
  workload.profile_of_worker.assign(workers, 0);
  workload.strategy.kind = "ddp";
  workload.bucket_in = {"bucket_in",
                        {{Bytes{4 << 20}, 1, us(20), us(5)}, {Bytes{8 << 20}, 2, us(40), us(5)}}};
  workload.collective = [](CollectiveKind kind, Bytes bytes) {
    CollectiveCost result;
    result.collective.kind = kind;
    result.collective.bytes = bytes;
    result.collective.duration = us(kind == CollectiveKind::broadcast ? 30 : 150);
    result.host = us(10);
    return result;
  };
  return workload;
}

TEST_CASE("DDP on two GPUs: two buckets, the first hidden, the second exposed", "[ddp]") {
  // Host: a 10, b 20, b' 30, hook and copy 37, reduce 47, a' 57, hook and copy 64, reduce 74,
  // optimizer 84, then it waits for the device.
  // Compute: a 10-110, b 110-210, b' 210-410, copy 410-430, a' 430-630, copy 630-650, waits,
  // optimizer 800-850. Communication: 430-580 (beside a'), 650-800.
  const TaskGraph graph = compile(gpu_workload(2), Phase::steady);
  const EngineResult result = run_steps(graph, 3);
  for (const std::vector<Time>& worker : result.step_end) {
    CHECK(worker == std::vector<Time>{us(850), us(1700), us(2550)});
  }
  const Breakdown step = break_down(graph, result, 1)[1].breakdown;
  CHECK(step.compute == us(690));
  CHECK(step.exposed == us(150));
  CHECK(step.hidden == us(150));
  CHECK(step.host == us(10));
  CHECK(step.waiting + step.input + step.idle == Time{});
  CHECK(break_down(graph, result, 0)[2].host_busy == us(84));

  const std::vector<BucketTimes> buckets = bucket_times(graph, result, 0);
  REQUIRE(buckets.size() == 2);
  CHECK(buckets[0].bytes == Bytes{4 << 20});
  CHECK(buckets[0].ready == us(410));
  CHECK(buckets[0].launch == us(430));
  CHECK(buckets[0].done == us(580));
  CHECK(buckets[1].ready == us(630));
  CHECK(buckets[1].done == us(800));
}

TEST_CASE("DDP's first iteration has one bucket and hides nothing", "[ddp]") {
  // Host: ..., b' 30, a' 40, two hooks and copy 49, reduce 59, optimizer 69.
  // Compute: a' ends at 610, copy of 8 MiB 610-650, reduce 650-800, optimizer 800-850.
  const TaskGraph graph = compile(gpu_workload(2), Phase::first);
  REQUIRE(graph.collectives.size() == 1);
  CHECK(graph.collectives[0].bytes == Bytes{8 << 20});
  const EngineResult result = run_steps(graph, 2);
  CHECK(result.step_end[0] == std::vector<Time>{us(850), us(1700)});
  const Breakdown step = break_down(graph, result, 0)[1].breakdown;
  CHECK(step.exposed == us(150));
  CHECK(step.hidden == Time{});
  CHECK(step.compute == us(690));
}

TEST_CASE("a straggler makes the others wait", "[ddp]") {
  // Worker 1 takes 1.5 times as long, from 15 us on: b' ends at 615, copy 645, a' 945, copy 975,
  // optimizer 75. Its reduces: 645-795, 975-1125; its step: 1200.
  // Worker 0 starts its second step at 1175 (25 us before): computes until 1825, waits for the
  // first reduce until 1845, sees it until 1995, waits for the second until 2175, sees it until
  // 2325, optimizer until 2375.
  const TaskGraph graph = compile(gpu_workload(2), Phase::steady);
  const Factor slow = Factor::of(1.5);
  const EngineResult result = run_steps(graph, 3, {{}, {slow, slow}});
  CHECK(result.step_end[0] == std::vector<Time>{us(1175), us(2375), us(3575)});
  CHECK(result.step_end[1] == std::vector<Time>{us(1200), us(2400), us(3600)});
  const Breakdown fast = break_down(graph, result, 0)[1].breakdown;
  CHECK(fast.compute == us(690));
  CHECK(fast.waiting == us(200));
  CHECK(fast.exposed == us(300));
  CHECK(fast.host == us(10));
  CHECK(fast.idle == Time{});
  const Breakdown straggler = break_down(graph, result, 1)[1].breakdown;
  CHECK(straggler.compute == us(1035));
  CHECK(straggler.exposed == us(150));
  CHECK(straggler.waiting == Time{});
  CHECK(straggler.host == us(15));
}

TEST_CASE("one of each kind stands for all, to the picosecond", "[ddp]") {
  // Five workers, two batches, one straggler: three kinds.
  Workload workload = gpu_workload(5);
  workload.profiles.push_back(at_batch(two_layers(), 31));
  workload.profile_of_worker = {0, 0, 1, 0, 1};
  workload.interference.transferring = 1.3;
  workload.interference.waiting = 1.1;
  workload.interference.collective_beside_compute = 1.2;
  const TaskGraph graph = compile(workload, Phase::steady);
  EngineOptions options;
  options.iterations = 6;
  options.slowdowns.resize(5);
  options.slowdowns[3] = {.host = Factor::of(1.37), .device = Factor::of(1.37)};
  const EngineResult full = run(graph, options);
  const ReducedRun reduced = reduce_symmetric(graph, options);
  CHECK(reduced.graph.program_of_worker.size() == 3);
  const EngineResult few = run(reduced.graph, reduced.options);
  for (std::size_t worker = 0; worker < 5; ++worker) {
    CHECK(full.step_end[worker] == few.step_end[reduced.class_of_worker[worker]]);
  }
}

TEST_CASE("as a graph the host launches once", "[ddp]") {
  // One launch of 30 us, then compute 30-670 without gaps, reduce 670-820, optimizer 820-870.
  Workload workload = gpu_workload(2);
  workload.graph = true;
  workload.profiles[0].step_overhead = cost(30, 0);
  const TaskGraph graph = compile(workload, Phase::steady);
  const EngineResult result = run_steps(graph, 2);
  CHECK(result.step_end[0] == std::vector<Time>{us(870), us(1740)});
  CHECK(break_down(graph, result, 0)[1].breakdown.host == us(30));
  CHECK(graph.programs[0].lane_begin[1] == 2);  // the launch, and the wait for the step's end
}

TEST_CASE("without a synchronisation the host runs ahead", "[ddp]") {
  // The host needs 84 us a step and never waits, so only the first step has a gap: 850, then
  // 840 each (the 10 us of the first launch are hidden).
  Workload workload = gpu_workload(2);
  workload.sync = Sync::none;
  const TaskGraph graph = compile(workload, Phase::steady);
  const EngineResult result = run_steps(graph, 4);
  CHECK(result.step_end[1] == std::vector<Time>{us(850), us(1690), us(2530), us(3370)});
  CHECK(break_down(graph, result, 1)[2].breakdown.host == Time{});
}

TEST_CASE("DDP on three CPU workers broadcasts buffers first and joins before the optimizer",
          "[ddp]") {
  // Buffers: 1 KiB of floats and one counter, 30 us each; handing one over takes 10 us.
  // Compute: hand over 0-10, 10-20. Communication: floats 10-40, counters 40-70.
  // Compute: a 70-170, n 170-190, b 190-290, b' 290-490, hook and copy 490-511 (4 MiB: 20 us, hook
  // 1 us), hand over 511-521, n' 521-561, a' 561-761 (n's hook of 1 us in front: 762), then the
  // bucket of n and a: hook and copy 762-783 + 10 to hand over = 793, reduce 793-943.
  // The first reduce: 521-671. Optimizer 943-993.
  Workload workload = gpu_workload(3);
  workload.cpu = true;
  workload.profiles = {with_norm()};
  workload.profiles[0].gradient_hook = cost(0, 1, 0);
  const Bytes second{(4 << 20) + 1024};
  workload.bucket_in.points = {{Bytes{4 << 20}, 1, us(20), {}}, {second, 2, us(20), {}}};
  const TaskGraph graph = compile(workload, Phase::steady);
  REQUIRE(graph.collectives.size() == 4);
  CHECK(graph.collectives[0].kind == CollectiveKind::broadcast);
  CHECK(graph.collectives[0].bytes == Bytes{1024});
  CHECK(graph.collectives[1].bytes == Bytes{8});
  CHECK(graph.collectives[3].bytes == second);
  CHECK(graph.programs[0].lane_begin[1] == 0);  // no host lane
  const EngineResult result = run_steps(graph, 2);
  for (const std::vector<Time>& worker : result.step_end) {
    CHECK(worker == std::vector<Time>{us(993), us(1986)});
  }
  const Breakdown step = break_down(graph, result, 2)[1].breakdown;
  CHECK(step.exposed == us(50 + 150));
  CHECK(step.hidden == us(10 + 150));
  CHECK(step.compute == us(793));
  CHECK(step.step() == us(993));
}

TEST_CASE("buffers are broadcast after the step before, even if the host runs ahead", "[ddp]") {
  // with_norm() on a GPU, no synchronisation: every step's broadcasts (60 us) lie between the
  // optimizer and the forward, so none is hidden.
  Workload workload = gpu_workload(2);
  workload.profiles = {with_norm()};
  workload.sync = Sync::none;
  const TaskGraph graph = compile(workload, Phase::steady);
  const EngineResult result = run_steps(graph, 4);
  const Breakdown step = break_down(graph, result, 0)[3].breakdown;
  CHECK(step.exposed == us(60 + 150));
  CHECK(step.host == Time{});
}

TEST_CASE("buckets are launched strictly in order", "[ddp]") {
  // Gradients are listed as ready in the order a, b, though backward runs b first: bucket 0 (a) is
  // complete last, and bucket 1 (b), long complete, follows it.
  Workload workload = gpu_workload(2);
  workload.profiles[0].layers[0].parameters[0].ready_order = 0;
  workload.profiles[0].layers[1].parameters[0].ready_order = 1;
  const TaskGraph graph = compile(workload, Phase::steady);
  const EngineResult result = run_steps(graph, 1);
  // Copies 410-430 (bucket 1) and 630-650 (bucket 0); reduces 650-800 and 800-950.
  const std::vector<BucketTimes> buckets = bucket_times(graph, result, 0);
  REQUIRE(buckets.size() == 2);
  CHECK(buckets[0].launch == us(650));
  CHECK(buckets[1].launch == us(800));
  CHECK(result.step_end[0][0] == us(1000));
}

TEST_CASE("loading runs ahead, and what it cannot hide is input", "[single]") {
  // Compute takes 650 us a step (10 us of launch in front of the first); a batch 800 us to load
  // and 50 us to copy. Step k computes from 800 (k + 1) + 50 on, for 650 us: 1500, 2300, 3100.
  Workload workload = gpu_workload(1);
  workload.strategy.kind = "single";
  workload.input = true;
  workload.sync = Sync::none;
  workload.profiles[0].input_load = us(800);
  workload.profiles[0].input_copy = us(50);
  const TaskGraph graph = compile(workload, Phase::steady);
  const EngineResult result = run_steps(graph, 3);
  CHECK(result.step_end[0] == std::vector<Time>{us(1500), us(2300), us(3100)});
  const Breakdown step = break_down(graph, result, 0)[2].breakdown;
  CHECK(step.compute == us(650));
  CHECK(step.input == us(150));
}

TEST_CASE("a copy costs what was measured, a line between, one rate beyond", "[copies]") {
  const CopyTable table{"bucket_in",
                        {{Bytes{1000}, 1, us(10), us(5)}, {Bytes{3000}, 1, us(20), us(7)}}};
  CHECK(copy_cost(table, Bytes{1000}).device == us(10));
  CHECK(copy_cost(table, Bytes{2000}).device == us(15));
  CHECK(copy_cost(table, Bytes{2000}).host == us(6));
  CHECK(copy_cost(table, Bytes{500}).device == us(10));
  CHECK(copy_cost(table, Bytes{6000}).device == us(40));
  CHECK(copy_cost({}, Bytes{6000}).device == Time{});
}

}  // namespace
}  // namespace lockstep
