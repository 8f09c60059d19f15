#include "sim/scenario/parts.h"

#include <fmt/core.h>

#include <algorithm>

#include "sim/core/error.h"
#include "sim/scenario/fields.h"

namespace lockstep {
namespace {

constexpr double kMostSlowdown = 1000;

Time positive_time(const ConfigNode& node, const std::string& name) {
  const Time time = to_time(node, name);
  if (time <= Time{}) throw InputError(node.at, name, "must be longer than nothing");
  return time;
}

Straggler read_straggler(const ConfigNode& node, const Scenario& scenario) {
  constexpr std::string_view kParts[] = {"step", "input", "forward", "backward"};
  Fields fields(node, "stragglers");
  Straggler straggler;
  const ConfigNode& worker = fields.require("worker", "3");
  straggler.worker = static_cast<int>(to_integer(worker, "stragglers.worker", 0, kMostWorkers - 1));
  const ConfigNode* slowdown = fields.find("slowdown");
  const ConfigNode* delay = fields.find("delay");
  const ConfigNode* part = fields.find("part");
  fields.finish();
  if (slowdown == nullptr && delay == nullptr) {
    throw InputError(node.at, "stragglers", "neither a slowdown nor a delay",
                     "such as slowdown: 1.2, or delay: 5ms");
  }
  if (slowdown != nullptr) {
    straggler.slowdown =
        Factor::of(to_number(*slowdown, "stragglers.slowdown", 1 / kMostSlowdown, kMostSlowdown));
  }
  if (delay != nullptr) straggler.delay = positive_time(*delay, "stragglers.delay");
  if (part != nullptr) {
    if (delay == nullptr) {
      throw InputError(part->at, "stragglers.part", "says where a delay is, none is given",
                       "add delay: 5ms; a slowdown is in all parts");
    }
    straggler.part = static_cast<StepPart>(to_choice(*part, "stragglers.part", kParts));
  }
  const int most = std::ranges::max(scenario.workers);
  if (straggler.worker >= most) {
    throw InputError(worker.at, "stragglers.worker",
                     fmt::format("worker {} never exists", straggler.worker),
                     fmt::format("with {} workers the last is {}", most, most - 1));
  }
  return straggler;
}

}  // namespace

void read_stragglers(const ConfigNode& list, Scenario& scenario) {
  for (const ConfigNode& item : to_list(list, "stragglers", kMostPoints)) {
    const Straggler straggler = read_straggler(item, scenario);
    if (std::ranges::find(scenario.stragglers, straggler.worker, &Straggler::worker) !=
        scenario.stragglers.end()) {
      throw InputError(item.at, "stragglers.worker",
                       fmt::format("worker {} is given twice", straggler.worker));
    }
    scenario.stragglers.push_back(straggler);
  }
}

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
