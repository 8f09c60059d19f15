// Horovod's thread of every rank, over Gloo between threads of this process.
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <chrono>
#include <thread>

#include "runner/strategies/negotiation.h"
#include "runner/strategies/strategy.h"
#include "sim/workload/fusion.h"
#include "tests/catch.h"
#include "tests/runner/ranks.h"

namespace lockstep::runner {
namespace {

using testing::on_ranks;

StrategyOptions horovod(Time cycle, Bytes threshold) {
  StrategyOptions options;
  options.kind = "horovod";
  options.cycle_time = cycle;
  options.fusion_threshold = threshold;
  return options;
}

/// Parameters of so many floats, which nothing computes.
Model plain_model(const std::vector<std::int64_t>& counts) {
  Model model("plain", {}, 0);
  ModelLayer layer{.name = "layer", .kind = "linear", .inputs = {Model::kInput}};
  for (const std::int64_t count : counts) {
    layer.parameters.push_back({"p" + std::to_string(layer.parameters.size()), at::zeros({count})});
  }
  model.add(std::move(layer));
  model.finish(c10::kCPU);
  return model;
}

void give_gradient(const Model& model, Strategy& strategy, int parameter, double value) {
  const at::Tensor& tensor = model.parameters()[static_cast<std::size_t>(parameter)];
  tensor.mutable_grad() = at::full(tensor.sizes(), value);
  strategy.gradient_ready(parameter);
}

}  // namespace

TEST_CASE("Ranks agree on what all have, whatever the order they got it in") {
  std::vector<std::vector<std::vector<int>>> seen(2);
  on_ranks(2, [&](Communicator& communicator, Device&) {
    Negotiation negotiation(communicator, 3);
    const bool first = communicator.rank() == 0;
    auto& agreed = seen[static_cast<std::size_t>(communicator.rank())];
    const auto cycle = [&](const std::vector<bool>& zero, const std::vector<bool>& one) {
      agreed.push_back(negotiation.agree(first ? zero : one));
    };
    cycle({false, false, false}, {false, false, false});
    cycle({true, false, true}, {false, false, true});  // new: 2 is everywhere, 0 is not
    cycle({true, false, false}, {true, true, false});  // and now 0; 1 has been named by one
    cycle({false, true, false}, {false, true, false});
    // A second step: all are cached, in the order 2, 0, 1.
    cycle({true, true, true}, {true, false, true});
    cycle({false, true, false}, {false, true, false});
  });
  const std::vector<std::vector<int>> expected{{}, {2}, {0}, {1}, {2, 0}, {1}};
  CHECK(seen[0] == expected);
  CHECK(seen[1] == expected);
}

TEST_CASE("The groups are those that the simulator's thread forms at the same times") {
  // Cycles of 120 ms; gradients 30 ms and more away from their beginnings, so that a busy machine
  // changes nothing. The second rank has each of them 20 ms later.
  const std::vector<std::int64_t> floats{100, 200, 300, 50, 1000};
  const std::vector<int> at_ms{40, 60, 165, 180, 290};
  constexpr int kLate = 20;
  const StrategyOptions options = horovod(Time::milliseconds(120), Bytes{1500});
  std::vector<std::vector<std::int64_t>> groups(2);  // bytes
  std::vector<double> sums(2);
  std::array in_order{true, true};
  on_ranks(2, [&](Communicator& communicator, Device& device) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    Model model = plain_model(floats);
    const auto strategy = make_strategy(options, model, &communicator, device);
    for (int step = 0; step < 2; ++step) {  // names, then the cache
      communicator.barrier();
      strategy->before_forward();
      const auto begin = std::chrono::steady_clock::now();
      for (std::size_t i = 0; i < floats.size(); ++i) {
        const int when = at_ms[i] + kLate * static_cast<int>(rank);
        std::this_thread::sleep_until(begin + std::chrono::milliseconds(when));
        give_gradient(model, *strategy, static_cast<int>(i), 1.0 + static_cast<double>(rank));
      }
      strategy->before_optimizer();
      groups[rank].clear();
      for (const BucketMoments& group : strategy->take_buckets()) {
        groups[rank].push_back(group.bytes.count);
        in_order[rank] =
            in_order[rank] && group.ready <= group.launch && group.launch <= group.done;
      }
      for (const at::Tensor& gradient : strategy->gradients()) {
        sums[rank] += gradient.sum().item<double>();
      }
      strategy->after_optimizer();
    }
  });
  std::vector<Gradient> gradients;
  std::vector<ReadyTimes> ready;
  for (std::size_t i = 0; i < floats.size(); ++i) {
    gradients.push_back({Bytes{floats[i] * 4}, 4});
    const Time when = Time::milliseconds(at_ms[i] + kLate);
    ready.push_back({when, when});
  }
  std::vector<std::int64_t> simulated;
  for (const FusionCycle& cycle :
       run_cycles(gradients, ready, options,
                  {.negotiation = Time::milliseconds(1),
                   .reduction = [](const Bucket&) { return Time::milliseconds(1); }})) {
    for (const Bucket& group : cycle.groups) simulated.push_back(bytes_of(group, gradients).count);
  }
  // At 120: 400 + 800 bytes; at 240: 1200 + 200; at 360: 4000.
  CHECK(simulated == std::vector<std::int64_t>{1200, 1400, 4000});
  CHECK(groups[0] == simulated);
  CHECK(groups[1] == simulated);
  CHECK(in_order == std::array{true, true});
  // Of 1650 values, 1 + 2 each, in two steps.
  CHECK(sums == std::vector<double>{2 * 3 * 1650.0, 2 * 3 * 1650.0});
}

}  // namespace lockstep::runner
