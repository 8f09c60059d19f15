#include "runner/strategies/unused_parameters.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <unordered_set>

namespace lockstep::runner {

std::vector<int> unused_parameters(const at::Tensor& loss,
                                   const std::vector<at::Tensor>& parameters) {
  using torch::autograd::Node;
  std::unordered_set<Node*> seen;
  std::vector<Node*> open{loss.grad_fn().get()};
  while (!open.empty()) {
    Node* node = open.back();
    open.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    for (const auto& edge : node->next_edges()) open.push_back(edge.function.get());
  }
  std::vector<int> unused;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto accumulator = torch::autograd::impl::grad_accumulator(parameters[i]);
    if (!seen.contains(accumulator.get())) unused.push_back(static_cast<int>(i));
  }
  return unused;
}

}  // namespace lockstep::runner
