// DDP's options for real: over Gloo between threads of this process, against one device.
#include <ATen/ops/randn.h>

#include "runner/measure/parity.h"
#include "runner/strategies/unused_parameters.h"
#include "tests/catch.h"
#include "tests/runner/ranks.h"

namespace lockstep::runner {
namespace {

double worst_of(int ranks, const StrategyOptions& options) {
  std::vector<double> apart(static_cast<std::size_t>(ranks), 1);
  testing::on_ranks(ranks, [&](Communicator& communicator, Device& device) {
    const Parity parity = check_parity("small_cnn", options, 2, 1, communicator, device);
    apart[static_cast<std::size_t>(communicator.rank())] = parity.relative_l2;
  });
  return std::ranges::max(apart);
}

StrategyOptions ddp() {
  StrategyOptions options;
  options.kind = "ddp";
  return options;
}

}  // namespace

TEST_CASE("Several passes train as one device does with all their samples") {
  const auto ranks = GENERATE(2, 3);
  StrategyOptions options = ddp();
  options.accumulate = 3;
  options.no_sync = GENERATE(false, true);
  options.find_unused_parameters = GENERATE(false, true);
  CHECK(worst_of(ranks, options) <= kParityBound);
}

TEST_CASE("Compressed gradients train within their rounding, and not as the others do") {
  const auto ranks = GENERATE(2, 3);
  StrategyOptions options = ddp();
  options.compression = Compression::bf16;
  options.accumulate = GENERATE(1, 2);
  const double apart = worst_of(ranks, options);
  CHECK(apart <= parity_bound(options, ranks));
  CHECK(apart > 1e-5);  // it was rounded
}

TEST_CASE("A parameter that the loss does not reach is found") {
  std::vector<at::Tensor> parameters;
  for (int i = 0; i < 4; ++i) parameters.push_back(at::randn({3}).requires_grad_());
  const at::Tensor loss = parameters[2].mul(parameters[0]).sum();
  CHECK(unused_parameters(loss, parameters) == std::vector<int>{1, 3});
}

}  // namespace lockstep::runner
