#include "sim/scenario/parts.h"

#include <fmt/core.h>

#include <algorithm>

#include "sim/core/error.h"
#include "sim/scenario/fields.h"

namespace lockstep {
namespace {

Time positive_time(const ConfigNode& node, const std::string& name) {
  const Time time = to_time(node, name);
  if (time <= Time{}) throw InputError(node.at, name, "must be longer than nothing");
  return time;
}

}  // namespace

InputOptions read_input(const ConfigNode& node) {
  constexpr std::int64_t kMostLoaders = 1024;
  InputOptions input;
  if (node.kind == ConfigNode::Kind::scalar) {
    input.on = to_switch(node, "input");
    return input;
  }
  Fields fields(node, "input");
  input.on = true;
  if (const ConfigNode* workers = fields.find("workers")) {
    input.workers = static_cast<int>(to_integer(*workers, "input.workers", 0, kMostLoaders));
  }
  if (const ConfigNode* load = fields.find("load")) {
    input.load = positive_time(*load, "input.load");
  }
  if (const ConfigNode* copy = fields.find("copy")) {
    input.copy = positive_time(*copy, "input.copy");
  }
  fields.finish();
  return input;
}

DatasetOptions read_dataset(const ConfigNode& node, const Scenario& scenario) {
  constexpr std::int64_t kMostSamples = 100'000'000'000;
  Fields fields(node, "dataset");
  DatasetOptions dataset;
  const ConfigNode& samples = fields.require("samples", "50000");
  dataset.samples = to_integer(samples, "dataset.samples", 1, kMostSamples);
  if (const ConfigNode* drop = fields.find("drop_last")) {
    dataset.drop_last = to_switch(*drop, "dataset.drop_last");
  }
  fields.finish();
  const std::int64_t most = std::ranges::max(scenario.workers);
  const std::int64_t a_step =
      scenario.total_batch ? *scenario.total_batch : most * scenario.batch_per_worker.value_or(1);
  if (dataset.drop_last && dataset.samples < a_step) {
    throw InputError(
        samples.at, "dataset.samples",
        fmt::format("{} samples are less than one step of {}", dataset.samples, a_step),
        "give more samples, or drop_last: false");
  }
  return dataset;
}

}  // namespace lockstep
