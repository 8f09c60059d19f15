#include "runner/strategies/strategy.h"

#include <ATen/core/grad_mode.h>
#include <fmt/ranges.h>

#include "sim/core/error.h"

namespace lockstep::runner {

void share_state(const Model& model, Communicator& communicator) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : model.parameters()) {
    communicator.broadcast(parameter.detach(), 0);
  }
  for (const at::Tensor& buffer : model.flat_buffers()) communicator.broadcast(buffer, 0);
  communicator.join();
  communicator.take_transfers();
}

at::Tensor Strategy::loss(Model& model, const at::Tensor& input, const at::Tensor& target,
                          Recorder* recorder) {
  return model.loss(input, target, recorder);
}

void Strategy::backward(const at::Tensor& loss, const at::Tensor& root) {
  loss.backward(root);
}

std::vector<std::string> strategy_names() {
  return {"single",  "all_reduce",       "gather_scatter", "ddp",
          "horovod", "parameter_server", "heterogeneous",  "data_parallel"};
}

std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, Model& model,
                                        Communicator* communicator, Device& device,
                                        PointToPoint* servers) {
  const std::string& kind = options.kind;
  if (kind == "single") return make_single(model);
  if (kind == "all_reduce" || kind == "gather_scatter" || kind == "ddp" || kind == "horovod" ||
      kind == "heterogeneous") {
    if (communicator == nullptr) {
      throw RunError(fmt::format("the strategy {} needs a communicator", kind));
    }
    if (kind == "all_reduce") return make_all_reduce(model, *communicator, device);
    if (kind == "gather_scatter") return make_gather_scatter(model, *communicator, device);
    if (kind == "horovod") return make_horovod(options, model, *communicator);
    if (kind == "heterogeneous") return make_heterogeneous(options, model, *communicator, device);
    return make_ddp(options, model, *communicator, device);
  }
  if (kind == "parameter_server") {
    if (communicator == nullptr || servers == nullptr) {
      throw RunError("parameter_server needs workers and servers");
    }
    return make_parameter_server(options, model, *communicator, device, *servers);
  }
  if (kind == "data_parallel")
    throw RunError("data_parallel needs its devices, not a communicator");
  throw InputError({}, "strategy", fmt::format("there is no strategy \"{}\"", kind),
                   fmt::format("one of {}", fmt::join(strategy_names(), ", ")));
}

}  // namespace lockstep::runner
