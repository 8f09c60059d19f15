#include "runner/measure/series.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "runner/measure/statistics.h"

namespace lockstep::runner {

namespace {

/// Median over the steps of what `part` says of each, in nanoseconds.
template <typename Part>
Time middle(const std::vector<TimedStep>& steps, Part part) {
  std::vector<std::int64_t> values;
  for (const TimedStep& step : steps) values.push_back(part(step));
  return Time::nanoseconds(median_ns(values));
}

std::vector<Bytes> sizes_of(const TimedStep& step) {
  std::vector<Bytes> sizes;
  for (const BucketTimes& bucket : step.buckets) sizes.push_back(bucket.bytes);
  return sizes;
}

/// What is reduced together may change from step to step: the steps that do as most do count.
std::vector<TimedStep> alike(const std::vector<TimedStep>& steps) {
  std::map<std::vector<Bytes>, std::vector<TimedStep>> by_sizes;
  for (const TimedStep& step : steps) by_sizes[sizes_of(step)].push_back(step);
  return std::ranges::max_element(by_sizes, {},
                                  [](const auto& entry) { return entry.second.size(); })
      ->second;
}

std::vector<BucketTimes> middle_buckets(const std::vector<TimedStep>& all) {
  const std::vector<TimedStep> steps = alike(all);
  std::vector<BucketTimes> buckets = steps.back().buckets;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const auto of = [&](Time BucketTimes::* moment) {
      return middle(steps, [&](const TimedStep& s) { return (s.buckets[i].*moment).ns(); });
    };
    buckets[i].ready = of(&BucketTimes::ready);
    buckets[i].launch = of(&BucketTimes::launch);
    buckets[i].done = of(&BucketTimes::done);
  }
  return buckets;
}

}  // namespace

void SpeedSeries::add(Moment before, Moment after) {
  before_.push_back(Time::nanoseconds(before));
  after_.push_back(Time::nanoseconds(after));
}

SpeedIndex SpeedSeries::of(const std::vector<Time>& steps) const {
  const std::size_t per_block = steps.size() / before_.size();
  std::vector<double> raw, normalised;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::size_t block = std::min(i / per_block, before_.size() - 1);
    raw.push_back(steps[i].seconds());
    normalised.push_back(2 * steps[i].seconds() /
                         (before_[block].seconds() + after_[block].seconds()));
  }
  const double reference = median(raw) / median(normalised);
  const double first = mean_time(before_).seconds(), last = mean_time(after_).seconds();
  const double scale = 2 * reference / (first + last);
  return {.before = Time::from_seconds(first * scale), .after = Time::from_seconds(last * scale)};
}

double SpeedSeries::change() const {
  std::vector<double> changes;
  for (std::size_t i = 0; i < before_.size(); ++i) {
    changes.push_back(std::abs(after_[i].seconds() / before_[i].seconds() - 1));
  }
  return median(changes);
}

void add_repeat(const RunSeries& series, int warmup, Worker& worker, Run& run) {
  const std::vector<TimedStep>& steps = series.steps;
  RunRepeat repeat;
  repeat.process = worker.options.repeat;
  repeat.warmup = warmup;
  repeat.steps = static_cast<int>(steps.size());
  for (const TimedStep& step : steps) repeat.samples.push_back(Time::nanoseconds(step.total));
  repeat.step = quantiles(repeat.samples);
  repeat.input = middle(steps, [](const TimedStep& s) { return s.input; });
  repeat.speed_index = series.speed.of(repeat.samples);
  repeat.speed_change = series.speed.change();

  RunRank rank;
  rank.rank = worker.rank();
  rank.device = worker.device->name();
  rank.step = repeat.step.p50;
  rank.forward = middle(steps, [](const TimedStep& s) { return s.forward; });
  rank.backward = middle(steps, [](const TimedStep& s) { return s.backward; });
  rank.optimizer = middle(steps, [](const TimedStep& s) { return s.optimizer; });
  rank.buckets = middle_buckets(steps);
  rank.peak = {worker.device->take_peak_bytes()};
  run.repeats.push_back(std::move(repeat));
  run.stable = is_stable(run, 1);
  run.ranks.push_back(std::move(rank));
}

}  // namespace lockstep::runner
