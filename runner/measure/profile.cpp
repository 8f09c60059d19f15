#include "runner/measure/profile.h"

#include <algorithm>

#include "runner/measure/clock.h"
#include "runner/measure/statistics.h"
#include "sim/core/error.h"

namespace lockstep::runner {

void HostRecorder::mark(Mark mark, int layer) {
  marks_.push_back({.mark = mark, .layer = layer, .at = host_now()});
}

StepParts cut_at_marks(const std::vector<MarkedMoment>& marks, std::size_t layers) {
  StepParts parts;
  parts.forward.assign(layers, 0);
  parts.backward.assign(layers, 0);
  LOCKSTEP_ASSERT(marks.size() > 1, "a step has a beginning and an end");
  parts.total = marks.back().at - marks.front().at;
  for (std::size_t i = 0; i + 1 < marks.size(); ++i) {
    const MarkedMoment& from = marks[i];
    const MarkedMoment& to = marks[i + 1];
    const Moment span = to.at - from.at;
    if (to.mark == Mark::forward_end) {
      parts.forward[static_cast<std::size_t>(to.layer)] += span;
    } else if (from.mark == Mark::backward_begin && from.layer >= 0) {
      parts.backward[static_cast<std::size_t>(from.layer)] += span;
      parts.backward_order.push_back(from.layer);
    } else if (from.mark == Mark::optimizer_begin) {
      parts.optimizer += span;
    } else {
      parts.other += span;
    }
  }
  return parts;
}

namespace {

/// Medians of the parts need not add up to the median of the whole; the ratio repairs that.
class PartMedians {
 public:
  explicit PartMedians(const std::vector<StepParts>& steps) : steps_(steps) {
    double parts = of([](const StepParts& s) { return s.optimizer; }) +
                   of([](const StepParts& s) { return s.other; });
    for (std::size_t i = 0; i < steps.front().forward.size(); ++i) {
      parts += of([i](const StepParts& s) { return s.forward[i]; }) +
               of([i](const StepParts& s) { return s.backward[i]; });
    }
    scale_ = of([](const StepParts& s) { return s.total; }) / parts;
  }

  template <typename Part>
  Time time(Part part) const {
    return Time::nanoseconds(std::llround(of(part) * scale_));
  }

 private:
  template <typename Part>
  double of(Part part) const {
    std::vector<double> values;
    for (const StepParts& step : steps_) values.push_back(static_cast<double>(part(step)));
    return median(values);
  }

  const std::vector<StepParts>& steps_;
  double scale_ = 1;
};

}  // namespace

std::vector<int> places_in_backward(const std::vector<int>& backward_order, std::size_t layers) {
  std::vector<int> places(layers, -1);
  int next = 0;
  for (const int layer : backward_order) places[static_cast<std::size_t>(layer)] = next++;
  for (std::size_t i = layers; i-- > 0;) {
    if (places[i] < 0) places[i] = next++;
  }
  return places;
}

Profile host_profile(const Model& model, const std::vector<StepParts>& steps,
                     const std::vector<int>& ready_order) {
  LOCKSTEP_ASSERT(!steps.empty(), "a profile rests on steps");
  const PartMedians medians(steps);
  std::vector<int> place_of(model.parameters().size(), -1);
  for (std::size_t i = 0; i < ready_order.size(); ++i) {
    place_of[static_cast<std::size_t>(ready_order[i])] = static_cast<int>(i);
  }

  Profile profile;
  profile.model = model.name();
  const std::vector<int> backward =
      places_in_backward(steps.back().backward_order, model.layers().size());
  std::size_t parameter = 0;
  for (std::size_t i = 0; i < model.layers().size(); ++i) {
    const ModelLayer& from = model.layers()[i];
    Layer& layer = profile.layers.emplace_back();
    layer.name = from.name;
    layer.kind = from.kind;
    layer.forward.device = medians.time([i](const StepParts& s) { return s.forward[i]; });
    layer.backward.device = medians.time([i](const StepParts& s) { return s.backward[i]; });
    layer.backward_order = backward[i];
    for (const NamedTensor& tensor : from.parameters) {
      if (from.frozen) break;
      layer.parameters.push_back({.name = from.name + "." + tensor.name,
                                  .bytes = {static_cast<std::int64_t>(tensor.tensor.nbytes())},
                                  .ready_order = place_of[parameter++]});
    }
    for (const NamedTensor& tensor : from.buffers) {
      if (!tensor.tensor.is_floating_point()) continue;
      layer.buffers += {static_cast<std::int64_t>(tensor.tensor.nbytes())};
    }
    layer.output = {from.output_bytes};
  }
  profile.optimizer.device = medians.time([](const StepParts& s) { return s.optimizer; });
  profile.step_overhead.device = medians.time([](const StepParts& s) { return s.other; });
  return profile;
}

}  // namespace lockstep::runner
