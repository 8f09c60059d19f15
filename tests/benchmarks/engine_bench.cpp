#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "sim/core/engine.h"
#include "sim/core/task_graph.h"

namespace lockstep {
namespace {

constexpr int kLayers = 161;  // leaf modules of ResNet-50
constexpr int kBuckets = 5;   // of its gradients, at 25 MiB
constexpr std::uint32_t kWorkers = 8;

/// Adds host and device work as pairs: the device task waits for its issue.
class StepBuilder {
 public:
  using Id = ProgramBuilder::Id;

  Id launch(Lane lane, TaskKind kind, Time host, Time device, int collective = kNoCollective) {
    const Id issue =
        builder_.add({.work = host, .launches = 1, .kind = TaskKind::issue, .lane = Lane::host});
    const Id task = builder_.add(
        {.work = device, .collective = collective, .interference = 1, .kind = kind, .lane = lane});
    builder_.edge(issue, task);
    return task;
  }
  void after(Id before, Id task) { builder_.edge(before, task); }
  void synchronise(Id last) {
    builder_.edge(last, builder_.add({.kind = TaskKind::mark, .lane = Lane::host}));
  }
  Program build() const { return builder_.build(); }

 private:
  ProgramBuilder builder_;
};

/// One DDP step of ResNet-50 as the engine sees it: two buffer broadcasts, forward, backward with
/// an all-reduce after every fifth of the layers, optimizer, host synchronised each step.
TaskGraph resnet50_ddp() {
  StepBuilder step;
  const auto us = [](int n) { return Time::nanoseconds(n * 1000); };
  TaskGraph graph;
  for (int b = 0; b < 2; ++b) {
    graph.collectives.push_back({.kind = CollectiveKind::broadcast, .duration = us(20)});
  }
  for (int b = 0; b < kBuckets; ++b) graph.collectives.push_back({.duration = us(300)});

  StepBuilder::Id buffers = 0;
  for (int b = 0; b < 2; ++b) {
    buffers = step.launch(Lane::communication, TaskKind::collective, us(8), Time(), b);
  }
  for (int layer = 0; layer < kLayers; ++layer) {
    const auto id =
        step.launch(Lane::compute, TaskKind::forward, us(9 + layer % 3), us(100 + layer % 7));
    if (layer == 0) step.after(buffers, id);
  }
  std::vector<StepBuilder::Id> reduced;
  for (int layer = kLayers - 1; layer >= 0; --layer) {
    const auto id =
        step.launch(Lane::compute, TaskKind::backward, us(15 + layer % 4), us(200 + layer % 11));
    const int place = kLayers - layer;
    const int bucket = place * kBuckets / kLayers - 1;
    if (bucket < 0 || (place - 1) * kBuckets / kLayers - 1 == bucket) continue;
    reduced.push_back(
        step.launch(Lane::communication, TaskKind::collective, us(10), Time(), 2 + bucket));
    step.after(id, reduced.back());
  }
  const auto optimizer = step.launch(Lane::compute, TaskKind::optimizer, us(500), us(800));
  for (const auto id : reduced) step.after(id, optimizer);
  step.synchronise(optimizer);

  graph.programs = {step.build()};
  graph.program_of_worker.assign(kWorkers, 0);
  graph.interference.push_back({Factor::of(1.05), Factor::of(1.25)});
  graph.launch_queue = 1024;
  return graph;
}

void run_resnet50_ddp(benchmark::State& state, const EngineOptions& options) {
  const TaskGraph graph = resnet50_ddp();
  std::uint64_t tasks = 0;
  for (auto _ : state) {
    const EngineResult result = run(graph, options);
    tasks += result.completed_tasks;
    benchmark::DoNotOptimize(result.step_end.back().back());
  }
  state.counters["tasks/s"] =
      benchmark::Counter(static_cast<double>(tasks), benchmark::Counter::kIsRate);
}

EngineOptions options(NoiseLevels noise) {
  EngineOptions options;
  options.iterations = 50;
  options.noise = noise;
  return options;
}

BENCHMARK_CAPTURE(run_resnet50_ddp, quiet, options({}))->Name("engine/resnet50_ddp");
BENCHMARK_CAPTURE(run_resnet50_ddp, step_noise, options({.process = 0.01, .step = 0.02}))
    ->Name("engine/resnet50_ddp/step_noise");
BENCHMARK_CAPTURE(run_resnet50_ddp, all_noise,
                  options({.process = 0.01, .step = 0.02, .task = 0.05}))
    ->Name("engine/resnet50_ddp/noise");

}  // namespace
}  // namespace lockstep
