#include "runner/strategies/strategy.h"

#include <fmt/format.h>

#include "sim/core/error.h"

namespace lockstep::runner {

std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, Model& model,
                                        Communicator* communicator, Device& device) {
  if (options.kind == "single") return make_single(model);
  if (options.kind == "ddp") {
    if (communicator == nullptr) throw RunError("the strategy ddp needs a communicator");
    return make_ddp(options, model, *communicator, device);
  }
  throw InputError({}, "strategy", fmt::format("there is no strategy \"{}\"", options.kind),
                   "one of single, ddp");
}

}  // namespace lockstep::runner
