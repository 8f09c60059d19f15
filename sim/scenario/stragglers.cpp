#include <fmt/core.h>

#include <algorithm>

#include "sim/core/error.h"
#include "sim/scenario/fields.h"
#include "sim/scenario/parts.h"
#include "sim/scenario/variability.h"

namespace lockstep {
namespace {

int read_worker(const ConfigNode& node) {
  if (node.kind == ConfigNode::Kind::scalar && node.scalar == "all") return kEveryWorker;
  return static_cast<int>(to_integer(node, "stragglers.worker", 0, kMostWorkers - 1));
}

void read_delay(const ConfigNode& node, Straggler& straggler) {
  const WrittenDelay delay = read_varying_delay(node, "stragglers.delay");
  straggler.delay = delay.typical;
  straggler.delay_varies = delay.variability;
}

}  // namespace

Straggler read_straggler(const ConfigNode& node) {
  constexpr std::string_view kParts[] = {"step", "input", "forward", "backward"};
  Fields fields(node, "stragglers");
  Straggler straggler;
  straggler.worker = read_worker(fields.require("worker", "3, or all"));
  const ConfigNode* slowdown = fields.find("slowdown");
  const ConfigNode* delay = fields.find("delay");
  const ConfigNode* part = fields.find("part");
  fields.finish();
  if (slowdown == nullptr && delay == nullptr) {
    throw InputError(node.at, "stragglers", "neither a slowdown nor a delay",
                     "such as slowdown: 1.2, or delay: 5ms");
  }
  if (slowdown != nullptr) {
    const WrittenFactor factor = read_varying_factor(*slowdown, "stragglers.slowdown");
    straggler.slowdown = Factor::of(factor.typical);
    straggler.slowdown_varies = factor.variability;
  }
  if (delay != nullptr) read_delay(*delay, straggler);
  if (part != nullptr) {
    if (delay == nullptr) {
      throw InputError(part->at, "stragglers.part", "says where a delay is, none is given",
                       "add delay: 5ms; a slowdown is in all parts");
    }
    straggler.part = static_cast<StepPart>(to_choice(*part, "stragglers.part", kParts));
  }
  return straggler;
}

void read_stragglers(const ConfigNode& list, Scenario& scenario) {
  const int most = std::ranges::max(scenario.workers);
  for (const ConfigNode& item : to_list(list, "stragglers", kMostPoints)) {
    const Straggler straggler = read_straggler(item);
    if (straggler.worker >= most) {
      throw InputError(Fields(item, "stragglers").require("worker", "").at, "stragglers.worker",
                       fmt::format("worker {} never exists", straggler.worker),
                       fmt::format("with {} workers the last is {}", most, most - 1));
    }
    if (std::ranges::find(scenario.stragglers, straggler.worker, &Straggler::worker) !=
        scenario.stragglers.end()) {
      throw InputError(item.at, "stragglers.worker",
                       straggler.worker == kEveryWorker
                           ? "all workers are given twice"
                           : fmt::format("worker {} is given twice", straggler.worker));
    }
    scenario.stragglers.push_back(straggler);
  }
}

}  // namespace lockstep
