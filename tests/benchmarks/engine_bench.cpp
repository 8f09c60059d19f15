#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/engine.h"
#include "sim/core/error.h"
#include "sim/core/task_graph.h"
#include "sim/platform/network.h"
#include "sim/workload/strategy.h"

namespace lockstep {
namespace {

Time us(double n) {
  return Time::from_seconds(n * 1e-6);
}

/// ResNet-50's leaf modules in forward order (He et al. 2015, table 1), with plausible times for a
/// batch of 32 on a large GPU: the engine's speed does not depend on them.
class Resnet50 {
 public:
  Profile profile() {
    conv("conv1", 3, 64, 7);
    layer("maxpool", "pool", {}, 0);
    int in = 64;
    const std::vector<std::pair<int, int>> stages{{3, 64}, {4, 128}, {6, 256}, {3, 512}};
    for (const auto& [blocks, width] : stages) {
      for (int b = 0; b < blocks; ++b) {
        conv("reduce", in, width, 1);
        conv("spatial", width, width, 3);
        conv("expand", width, 4 * width, 1);
        if (b == 0) conv("downsample", in, 4 * width, 1);
        layer("add", "add", {}, 0);
        in = 4 * width;
      }
    }
    layer("fc", "linear", {in * 1000, 1000}, 0);
    layer("loss", "loss", {}, 0);
    // Backward runs in reverse, and so do gradients get ready, a layer's last parameter first.
    int ready = 0;
    for (std::size_t i = profile_.layers.size(); i-- > 0;) {
      Layer& layer = profile_.layers[i];
      layer.backward_order = static_cast<int>(profile_.layers.size() - 1 - i);
      for (std::size_t p = layer.parameters.size(); p-- > 0;) {
        layer.parameters[p].ready_order = ready++;
      }
    }
    profile_.optimizer = {us(300), us(500), 30};
    profile_.gradient_hook = {us(2), Time(), 0};
    return profile_;
  }

 private:
  /// A convolution with its normalisation.
  void conv(const std::string& name, int in, int out, int size) {
    layer(name, "conv", {in * out * size * size}, 0);
    layer(name + " norm", "norm", {out, out}, 2 * out);
  }
  void layer(const std::string& name, const std::string& kind, const std::vector<int>& parameters,
             int buffers) {
    Layer layer;
    layer.name = name;
    layer.kind = kind;
    const auto place = static_cast<double>(profile_.layers.size() % 7);
    layer.forward = {us(9 + place), us(40 + 3 * place), 1};
    layer.backward = {us(14 + place), us(80 + 5 * place), 2};
    for (const int count : parameters) {
      layer.parameters.push_back({"weight", Bytes{std::int64_t{4} * count}, 0});
    }
    layer.buffers = Bytes{std::int64_t{4} * buffers};
    profile_.layers.push_back(layer);
  }

  Profile profile_;
};

/// A DDP step of it: issue and device work of every layer, two buffer broadcasts, five buckets.
TaskGraph resnet50_ddp(std::uint32_t workers, bool expanded = false) {
  Workload workload;
  workload.profiles = {Resnet50().profile()};
  LOCKSTEP_ASSERT(parameter_bytes(workload.profiles[0]) == Bytes{4 * 25'557'032},
                  "ResNet-50 has 25,557,032 parameters");
  workload.profile_of_worker.assign(workers, 0);
  workload.strategy.kind = "ddp";
  workload.launch_queue = 1024;
  workload.interference = {1.05, 1.25, 1.1, {}, {}};
  workload.collective = [&](CollectiveKind kind, Bytes bytes) {
    Collective collective{.kind = kind, .bytes = bytes};
    collective.duration = us(20) + transfer_time(bytes, Bandwidth{300'000'000'000});
    collective.expanded = expanded;
    return CollectiveCost{collective, us(10)};
  };
  return compile(workload, Phase::steady);
}

void run_and_count(benchmark::State& state, const TaskGraph& graph, const EngineOptions& options) {
  std::uint64_t tasks = 0;
  for (auto _ : state) {
    const EngineResult result = run(graph, options);
    tasks += result.completed_tasks;
    benchmark::DoNotOptimize(result.step_end.back().back());
  }
  state.counters["tasks/s"] =
      benchmark::Counter(static_cast<double>(tasks), benchmark::Counter::kIsRate);
  state.counters["tasks/worker"] = static_cast<double>(graph.programs[0].tasks.size());
}

EngineOptions options(NoiseLevels noise = {}) {
  EngineOptions options;
  options.iterations = 50;
  options.noise = noise;
  return options;
}

void table(benchmark::State& state, NoiseLevels noise) {
  run_and_count(state, resnet50_ddp(8), options(noise));
}

/// Every message of every ring, over links; messages are not counted as tasks.
void step_by_step(benchmark::State& state) {
  const auto workers = static_cast<std::uint32_t>(state.range(0));
  const Network network(plain_network({.workers = workers,
                                       .devices_per_host = 4,
                                       .device_bandwidth = {300'000'000'000},
                                       .host_bandwidth = {50'000'000'000},
                                       .host_latency = us(2)}));
  EngineOptions with_network = options();
  with_network.network = &network;
  run_and_count(state, resnet50_ddp(workers, true), with_network);
}

BENCHMARK_CAPTURE(table, quiet, NoiseLevels{})->Name("engine/resnet50_ddp");
BENCHMARK_CAPTURE(table, step_noise, NoiseLevels{.process = 0.01, .step = 0.02})
    ->Name("engine/resnet50_ddp/step_noise");
BENCHMARK_CAPTURE(table, noise, NoiseLevels{.process = 0.01, .step = 0.02, .task = 0.05})
    ->Name("engine/resnet50_ddp/noise");
BENCHMARK(step_by_step)->Name("engine/resnet50_ddp/step_by_step")->Arg(8)->Arg(64);

}  // namespace
}  // namespace lockstep
