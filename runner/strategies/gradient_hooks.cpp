#include "runner/strategies/gradient_hooks.h"

#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace lockstep::runner {

// The accumulator node is held here: a parameter refers to it weakly.
struct GradientHooks::Hook {
  std::shared_ptr<torch::autograd::Node> accumulator;
  std::uintptr_t key = 0;
};

GradientHooks::GradientHooks(const std::vector<at::Tensor>& parameters,
                             const std::function<void(int)>& ready) {
  using torch::autograd::variable_list;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    auto accumulator = torch::autograd::impl::grad_accumulator(parameters[i]);
    const auto key =
        accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
            [ready, index = static_cast<int>(i)](const variable_list& outputs,
                                                 const variable_list&) {
              ready(index);
              return outputs;
            }));
    hooks_.push_back({std::move(accumulator), key});
  }
}

GradientHooks::~GradientHooks() {
  for (const Hook& hook : hooks_) hook.accumulator->del_post_hook(hook.key);
}

}  // namespace lockstep::runner
