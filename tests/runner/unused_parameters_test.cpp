#include <ATen/ops/randn.h>

#include "runner/strategies/unused_parameters.h"
#include "tests/catch.h"

namespace lockstep::runner {

TEST_CASE("A parameter that the loss does not reach is found") {
  std::vector<at::Tensor> parameters;
  for (int i = 0; i < 4; ++i) parameters.push_back(at::randn({3}).requires_grad_());
  const at::Tensor loss = parameters[2].mul(parameters[0]).sum();
  CHECK(unused_parameters(loss, parameters) == std::vector<int>{1, 3});
}

}  // namespace lockstep::runner
