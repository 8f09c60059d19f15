// Reads case files.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "calibration/published.h"
#include "sim/core/files.h"
#include "sim/scenario/fields.h"
#include "sim/scenario/parts.h"

namespace lockstep {
namespace {

constexpr std::size_t kMostConstants = 2;
constexpr std::size_t kMostTexts = 50;

std::vector<std::string> read_texts(Fields& fields, std::string_view key) {
  std::vector<std::string> texts;
  const ConfigNode* list = fields.find(key);
  if (list == nullptr) return texts;
  for (const ConfigNode& item : to_list(*list, std::string(key), kMostTexts)) {
    texts.push_back(to_text(item, std::string(key)));
  }
  return texts;
}

ConfigNode scalar(const std::string& text, const Location& at) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::scalar;
  node.at = at;
  node.scalar = text;
  return node;
}

ConfigNode& entry(ConfigNode& map, const ConfigNode& key) {
  const auto found = std::ranges::find(map.keys, key.scalar, &ConfigNode::scalar);
  if (found != map.keys.end()) return map.items[static_cast<std::size_t>(found - map.keys.begin())];
  map.keys.push_back(key);
  return map.items.emplace_back();
}

/// What `changes` says, over what is there; maps are merged, everything else is replaced.
void merge(ConfigNode& into, const ConfigNode& changes) {
  if (into.kind != ConfigNode::Kind::map || changes.kind != ConfigNode::Kind::map) {
    into = changes;
    return;
  }
  for (std::size_t i = 0; i < changes.keys.size(); ++i) {
    merge(entry(into, changes.keys[i]), changes.items[i]);
  }
}

PublishedConstant read_constant(const ConfigNode& node) {
  Fields fields(node, "constants");
  PublishedConstant constant;
  constant.name = to_text(fields.require("name", "link"), "constants.name");
  const ConfigNode& set = fields.require("set", "\"platform.network.bandwidth={}\"");
  constant.set = to_text(set, "constants.set");
  const ConfigNode& low = fields.require("from", "100Mbit/s");
  const ConfigNode& high = fields.require("to", "10Gbit/s");
  fields.finish();
  const std::size_t hole = constant.set.find("{}");
  if (hole == std::string::npos || constant.set.find("{}", hole + 1) != std::string::npos) {
    throw InputError(set.at, "constants.set", "needs exactly one {} for the value",
                     "such as \"platform.network.bandwidth={}\"");
  }
  constant.bandwidth = to_text(low, "constants.from").ends_with("/s");
  const auto value = [&](const ConfigNode& end, const std::string& name) {
    if (!constant.bandwidth) return to_time(end, name).seconds();
    return static_cast<double>(to_bandwidth(end, name).bytes_per_second);
  };
  constant.low = value(low, "constants.from");
  constant.high = value(high, "constants.to");
  if (constant.low <= 0 || constant.low >= constant.high) {
    throw InputError(high.at, "constants.to", "must be above `from`, and that above zero");
  }
  return constant;
}

double read_figure(const ConfigNode& node, PublishedQuantity quantity, const std::string& name) {
  constexpr double kMost = 1e9;
  const bool of_time = quantity == PublishedQuantity::time || quantity == PublishedQuantity::epoch;
  const double value = of_time ? to_time(node, name).seconds() : to_number(node, name, 0, kMost);
  if (value <= 0) throw InputError(node.at, name, "must be above zero");
  return value;
}

void read_role(Fields& fields, PublishedPoint& point) {
  constexpr std::string_view kRoles[] = {"fitted", "predicted", "suspect", "unpredicted", "base"};
  if (const ConfigNode* role = fields.find("role")) {
    const std::size_t choice = to_choice(*role, "points.role", kRoles);
    point.base = kRoles[choice] == "base";
    point.role = point.base ? PublishedRole::fitted : static_cast<PublishedRole>(choice);
    const bool a_step = point.quantity < PublishedQuantity::speedup;
    if (point.base && (point.workers != 1 || !a_step)) {
      throw InputError(role->at, "points.role", "a base is the time or throughput of one worker");
    }
  }
  const bool wants_why =
      point.role == PublishedRole::suspect || point.role == PublishedRole::unpredicted;
  const ConfigNode* why = fields.find("why");
  if (why != nullptr) point.why = to_text(*why, "points.why");
  if (wants_why != (why != nullptr)) {
    throw InputError(why != nullptr ? why->at : point.at, "points.why",
                     wants_why ? "missing" : "only suspect and unpredicted points have a reason",
                     "why: neighbours disagree");
  }
}

PublishedPoint read_point(const ConfigNode& node) {
  constexpr std::array<std::string_view, 5> kQuantities{"time", "epoch", "images_per_s", "speedup",
                                                        "efficiency"};
  Fields fields(node, "points");
  PublishedPoint point;
  point.at = node.at;
  point.workers = static_cast<int>(
      to_integer(fields.require("workers", "4"), "points.workers", 1, kMostWorkers));
  int figures = 0;
  for (std::size_t i = 0; i < kQuantities.size(); ++i) {
    const ConfigNode* figure = fields.find(kQuantities[i]);
    if (figure == nullptr) continue;
    ++figures;
    point.quantity = static_cast<PublishedQuantity>(i);
    point.published = read_figure(*figure, point.quantity, "points." + std::string(kQuantities[i]));
  }
  if (figures != 1) {
    throw InputError(node.at, "points", fmt::format("{} figures", figures),
                     "one of time, epoch, images_per_s, speedup, efficiency a point");
  }
  read_role(fields, point);
  fields.finish();
  return point;
}

/// A scenario names all numbers of workers that it is asked for.
void add_workers(ConfigNode& scenario, const std::string& case_name, std::vector<int> workers,
                 const Location& at) {
  for (const char* ours : {"name", "workers"}) {
    if (std::ranges::find(scenario.keys, ours, &ConfigNode::scalar) != scenario.keys.end()) {
      throw InputError(at, ours, "does not belong into a case's scenario", "points say it");
    }
  }
  std::ranges::sort(workers);
  const auto [first, last] = std::ranges::unique(workers);
  workers.erase(first, last);
  ConfigNode list;
  list.kind = ConfigNode::Kind::list;
  list.at = at;
  for (const int n : workers) list.items.push_back(scalar(std::to_string(n), at));
  entry(scenario, scalar("name", at)) = scalar(case_name, at);
  entry(scenario, scalar("workers", at)) = list;
}

std::vector<int> workers_of(const PublishedExperiment& experiment,
                            const std::vector<PublishedShape>& shapes) {
  std::vector<int> workers;
  for (const PublishedPoint& point : experiment.points) workers.push_back(point.workers);
  for (const PublishedShape& shape : shapes) {
    if (shape.experiment != experiment.name) continue;
    workers.insert(workers.end(), shape.workers.begin(), shape.workers.end());
  }
  return workers;
}

PublishedExperiment read_experiment(const ConfigNode& node, const ConfigNode* common,
                                    const PublishedCase& all) {
  Fields fields(node, "experiments");
  PublishedExperiment experiment;
  experiment.at = node.at;
  const ConfigNode& name = fields.require("name", "ddp");
  experiment.name = to_text(name, "experiments.name");
  if (std::ranges::find(all.experiments, experiment.name, &PublishedExperiment::name) !=
      all.experiments.end()) {
    throw InputError(name.at, "experiments.name", "given twice");
  }
  experiment.scenario.kind = ConfigNode::Kind::map;
  experiment.scenario.at = node.at;
  if (common != nullptr) experiment.scenario = *common;
  if (const ConfigNode* set = fields.find("set")) {
    if (set->kind != ConfigNode::Kind::map) {
      throw InputError(set->at, "experiments.set", "expected a map of a scenario's keys",
                       "set: {strategy: {kind: ddp}}");
    }
    merge(experiment.scenario, *set);
  }
  for (const PublishedConstant& constant : all.constants) {
    experiment.constants.push_back(constant.name);
  }
  if (const ConfigNode* list = fields.find("constants")) {
    const std::vector<std::string> known = experiment.constants;
    experiment.constants.clear();
    for (const ConfigNode& item : to_list(*list, "experiments.constants", kMostConstants)) {
      const std::string text = to_text(item, "experiments.constants");
      if (std::ranges::find(known, text) == known.end()) {
        throw InputError(item.at, "experiments.constants", fmt::format("no constant is '{}'", text),
                         "name one of the case's constants");
      }
      experiment.constants.push_back(text);
    }
  }
  for (const ConfigNode& item :
       to_list(fields.require("points", "[{workers: 4, time: 1.3s}]"), "points", kMostPoints)) {
    experiment.points.push_back(read_point(item));
  }
  fields.finish();
  return experiment;
}

std::vector<int> read_shape_workers(const ConfigNode& node) {
  std::vector<int> workers;
  for (const ConfigNode& item : to_list(node, "shape.workers", kMostPoints)) {
    workers.push_back(static_cast<int>(to_integer(item, "shape.workers", 1, kMostWorkers)));
  }
  if (workers.size() < 2) throw InputError(node.at, "shape.workers", "needs at least two");
  return workers;
}

/// Times of all workers, step by step.
std::vector<std::vector<Time>> read_steps(const ConfigNode& node) {
  std::vector<std::vector<Time>> steps;
  for (const ConfigNode& step : to_list(node, "shape.steps", kMostPoints)) {
    std::vector<Time> times;
    for (const ConfigNode& time : to_list(step, "shape.steps", kMostPoints)) {
      times.push_back(to_time(time, "shape.steps"));
    }
    if (times.empty() || (!steps.empty() && times.size() != steps.front().size())) {
      throw InputError(step.at, "shape.steps", "every step needs a time of every worker");
    }
    steps.push_back(std::move(times));
  }
  if (steps.empty()) throw InputError(node.at, "shape.steps", "an empty list");
  return steps;
}

PublishedShape read_shape(const ConfigNode& node) {
  constexpr std::string_view kChecks[] = {"slower", "no_gain", "falls", "first_gain_largest",
                                          "mean_of_maxima"};
  Fields fields(node, "shape");
  PublishedShape shape;
  shape.at = node.at;
  shape.says = to_text(fields.require("says", "ddp falls with every worker"), "shape.says");
  shape.check = static_cast<PublishedShape::Check>(
      to_choice(fields.require("check", "falls"), "shape.check", kChecks));
  if (shape.check == PublishedShape::Check::mean_of_maxima) {
    shape.steps = read_steps(fields.require("steps", "[[1.9s, 2.5s], [2.3s, 1.4s]]"));
  } else {
    shape.experiment = to_text(fields.require("experiment", "ddp"), "shape.experiment");
    shape.workers = read_shape_workers(fields.require("workers", "[1, 2, 4]"));
  }
  if (shape.check == PublishedShape::Check::no_gain) {
    shape.within = to_number(fields.require("within", "0.05"), "shape.within", 0, 0.5);
  }
  fields.finish();
  return shape;
}

void check_shapes(const PublishedCase& all) {
  for (const PublishedShape& shape : all.shapes) {
    if (shape.experiment.empty()) continue;
    const auto& experiments = all.experiments;
    if (std::ranges::find(experiments, shape.experiment, &PublishedExperiment::name) !=
        experiments.end()) {
      continue;
    }
    throw InputError(shape.at, "shape.experiment",
                     fmt::format("no experiment is '{}'", shape.experiment),
                     "name one of the case's experiments");
  }
}

PublishedCase to_case(const ConfigNode& root) {
  Fields fields(root, "");
  PublishedCase result;
  result.name = to_text(fields.require("case", "cs744-vgg11"), "case");
  result.source = to_text(fields.require("source", "a report, 2022"), "source");
  result.notes = read_texts(fields, "notes");
  result.assumptions = read_texts(fields, "assumptions");
  if (const ConfigNode* samples = fields.find("samples")) {
    result.samples = to_integer(*samples, "samples", 1, 1'000'000'000);
  }
  if (const ConfigNode* list = fields.find("constants")) {
    for (const ConfigNode& item : to_list(*list, "constants", kMostConstants)) {
      result.constants.push_back(read_constant(item));
    }
  }
  if (const ConfigNode* list = fields.find("shape")) {
    for (const ConfigNode& item : to_list(*list, "shape", kMostPoints)) {
      result.shapes.push_back(read_shape(item));
    }
  }
  const ConfigNode* common = fields.find("scenario");
  if (const ConfigNode* list = fields.find("experiments")) {
    for (const ConfigNode& item : to_list(*list, "experiments", kMostPoints)) {
      result.experiments.push_back(read_experiment(item, common, result));
    }
  }
  fields.finish();
  check_shapes(result);
  for (PublishedExperiment& experiment : result.experiments) {
    const std::vector<int> workers = workers_of(experiment, result.shapes);
    if (workers.empty()) throw InputError(experiment.at, "points", "neither points nor a shape");
    add_workers(experiment.scenario, result.name, workers, experiment.at);
  }
  return result;
}

}  // namespace

PublishedCase parse_published(const std::string& text, const std::string& file) {
  return to_case(parse_yaml(text, file));
}

PublishedCase read_published(const std::string& file) {
  return to_case(read_yaml(file));
}

}  // namespace lockstep
