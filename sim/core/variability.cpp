#include "sim/core/variability.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/core/error.h"

namespace lockstep {
namespace {

using Kind = Variability::Kind;
constexpr double kLargestDraw = 1e5;

/// A whole number below `count`, the same for all steps of a worker.
std::uint64_t place_of_worker(DrawKey key, std::uint64_t count) {
  key.iteration = kWhole;
  const double u = 1 - uniform(key);  // [0, 1)
  return std::min(count - 1, static_cast<std::uint64_t>(u * static_cast<double>(count)));
}

double periodic(const Variability& v, const DrawKey& key) {
  LOCKSTEP_ASSERT(v.every > 0, "a pause by the clock is not drawn by step");
  const auto every = static_cast<std::uint64_t>(v.every);
  const std::uint64_t place = v.aligned ? every - 1 : place_of_worker(key, every);
  return key.iteration % every == place ? v.high : v.low;
}

double one_of(const Variability& v, const DrawKey& key) {
  LOCKSTEP_ASSERT(!v.values.empty(), "one of no samples");
  const std::size_t count = v.values.size();
  if (v.listed) return v.values[key.iteration % count];
  const auto place = static_cast<std::size_t>((1 - uniform(key)) * static_cast<double>(count));
  return v.values[std::min(place, count - 1)];
}

double drawn(const Variability& v, const DrawKey& key) {
  switch (v.kind) {
    case Kind::constant:
      return 1;
    case Kind::log_normal:
      return std::exp(v.sigma * standard_normal(key));
    case Kind::pareto:
      return std::pow(uniform(key), -1 / v.shape);
    case Kind::periodic:
      return periodic(v, key);
    case Kind::samples:
      return one_of(v, key);
  }
  return 1;
}

}  // namespace

std::string_view fault_of(const Variability& v) {
  const auto factor = [](double value) { return value >= 0 && value <= kLargestDraw; };
  if (!factor(v.least)) return "a least draw out of range";
  switch (v.kind) {
    case Kind::constant:
      break;
    case Kind::log_normal:
      if (!(v.sigma >= 0)) return "a deviation below zero";
      break;
    case Kind::pareto:
      if (!(v.shape > 1)) return "a shape of at most one, which has no mean";
      break;
    case Kind::periodic:
      if (!factor(v.low) || !factor(v.high)) return "a factor out of range";
      if (v.every < 0 || (v.every == 0 && v.period <= Time{})) return "a period of nothing";
      break;
    case Kind::samples:
      if (v.values.empty()) return "no samples";
      if (!std::ranges::all_of(v.values, factor)) return "a sample out of range";
      break;
  }
  return "";
}

bool by_clock(const Variability& v) {
  return v.kind == Kind::periodic && v.every == 0;
}

bool varies(const Variability& v) {
  return v.kind != Kind::constant;
}

bool differs_by_worker(const Variability& v) {
  switch (v.kind) {
    case Kind::constant:
      return false;
    case Kind::log_normal:
      return v.sigma > 0;
    case Kind::pareto:
      return true;
    case Kind::periodic:
      return !v.aligned;
    case Kind::samples:
      return !v.listed;
  }
  return true;
}

Factor draw(const Variability& v, const DrawKey& key) {
  return Factor::of(std::clamp(drawn(v, key), v.least, kLargestDraw));
}

std::int64_t pauses_due(const Variability& v, const DrawKey& key, Time from, Time to) {
  const std::int64_t period = v.period.ps();
  LOCKSTEP_ASSERT(period > 0, "a pause by the clock has a period");
  const std::int64_t before_first =
      v.aligned
          ? 0
          : static_cast<std::int64_t>(place_of_worker(key, static_cast<std::uint64_t>(period))) +
                1 - period;
  const auto due_until = [&](Time time) { return (time.ps() - before_first) / period; };
  return due_until(to) - due_until(from);
}

double mean(const Variability& v) {
  switch (v.kind) {
    case Kind::constant:
      return 1;
    case Kind::log_normal:
      return std::exp(v.sigma * v.sigma / 2);
    case Kind::pareto:
      return v.shape / (v.shape - 1);
    case Kind::periodic:
      return v.every > 0 ? v.low + (v.high - v.low) / v.every : 0;
    case Kind::samples:
      return std::accumulate(v.values.begin(), v.values.end(), 0.0) /
             static_cast<double>(v.values.size());
  }
  return 1;
}

}  // namespace lockstep
