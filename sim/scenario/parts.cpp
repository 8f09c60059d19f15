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

std::vector<StepTime> read_step_times(const ConfigNode& node) {
  constexpr std::int64_t kMostBatch = 1'000'000;
  constexpr Time kLongest = Time::milliseconds(3'600'000);
  std::vector<StepTime> times;
  const auto read = [&](const ConfigNode& item) {
    Fields fields(item, "step_time");
    StepTime step;
    const ConfigNode& batch = fields.require("batch", "64");
    step.batch = static_cast<int>(to_integer(batch, "step_time.batch", 1, kMostBatch));
    const ConfigNode& time = fields.require("time", "120ms");
    step.time = positive_time(time, "step_time.time");
    if (step.time > kLongest) throw InputError(time.at, "step_time.time", "longer than an hour");
    fields.finish();
    if (std::ranges::find(times, step.batch, &StepTime::batch) != times.end()) {
      throw InputError(batch.at, "step_time.batch", fmt::format("{} is given twice", step.batch));
    }
    times.push_back(step);
  };
  if (node.kind == ConfigNode::Kind::list) {
    for (const ConfigNode& item : to_list(node, "step_time", kMostPoints)) read(item);
    if (times.empty()) throw InputError(node.at, "step_time", "an empty list");
  } else {
    read(node);
  }
  std::ranges::sort(times, {}, &StepTime::batch);
  return times;
}

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
  const std::int64_t a_pass =
      scenario.total_batch ? *scenario.total_batch : most * scenario.batch_per_worker.value_or(1);
  const std::int64_t a_step = a_pass * scenario.strategy.accumulate;
  if (dataset.drop_last && dataset.samples < a_step) {
    throw InputError(
        samples.at, "dataset.samples",
        fmt::format("{} samples are less than one step of {}", dataset.samples, a_step),
        "give more samples, or drop_last: false");
  }
  return dataset;
}

}  // namespace lockstep
