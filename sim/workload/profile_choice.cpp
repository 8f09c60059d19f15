#include "sim/workload/profile_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "sim/core/error.h"

namespace lockstep {
namespace {

using ByBatch = std::map<int, const Profile*>;

void worsen(Basis& basis, Basis other) {
  basis = std::max(basis, other);
}

[[noreturn]] void reject_model(const Calibration& calibration, const std::string& model) {
  std::set<std::string> known;
  for (const Profile& profile : calibration.profiles) known.insert(profile.model);
  throw InputError({}, "model",
                   fmt::format("'{}' was not measured in calibration '{}'", model, calibration.id),
                   fmt::format("measured are {}", fmt::join(known, ", ")));
}

[[noreturn]] void reject_precision(const std::vector<const Profile*>& candidates,
                                   const ProfileQuery& query) {
  std::set<std::string> known;
  for (const Profile* profile : candidates) known.insert(profile->precision);
  throw InputError({}, "precision",
                   fmt::format("{} was not measured in {}", query.model, query.precision),
                   fmt::format("measured are {}", fmt::join(known, ", ")));
}

std::vector<const Profile*> of_model(const Calibration& calibration, const ProfileQuery& query) {
  std::vector<const Profile*> candidates;
  for (const Profile& profile : calibration.profiles) {
    if (profile.model == query.model) candidates.push_back(&profile);
  }
  if (candidates.empty()) reject_model(calibration, query.model);
  std::vector<const Profile*> precise = candidates;
  std::erase_if(precise, [&](const Profile* p) { return p->precision != query.precision; });
  if (precise.empty()) reject_precision(candidates, query);
  return precise;
}

/// A step that is launched as a whole has its own profiles; without them, the device times of the
/// eager ones stand in. The other way round the host's times are missing.
void keep_mode(std::vector<const Profile*>& candidates, const ProfileQuery& query, Basis& basis) {
  std::vector<const Profile*> same = candidates;
  std::erase_if(same, [&](const Profile* p) { return p->graph != query.graph; });
  if (!same.empty()) {
    candidates = same;
    return;
  }
  if (!query.graph) {
    throw InputError({}, "graph", fmt::format("{} was measured as a graph only", query.model),
                     "set graph: true, or calibrate eager steps");
  }
  worsen(basis, Basis::extrapolated);
}

/// Per batch the profile with as many workers beside as asked for; else the next fewer, else the
/// next more.
ByBatch nearest_beside(const std::vector<const Profile*>& candidates, int beside) {
  const auto better = [beside](const Profile& a, const Profile& b) {
    const bool a_fits = a.beside <= beside;
    const bool b_fits = b.beside <= beside;
    if (a_fits != b_fits) return a_fits;
    return a_fits ? a.beside > b.beside : a.beside < b.beside;
  };
  ByBatch by_batch;
  for (const Profile* profile : candidates) {
    const auto [entry, added] = by_batch.emplace(profile->batch, profile);
    if (!added && better(*profile, *entry->second)) entry->second = profile;
  }
  return by_batch;
}

/// Against one active worker; beyond the table, cores are shared evenly.
double core_slowdown(const Calibration& calibration, int active, Basis& basis) {
  if (active <= 1) return 1;
  const int threads = compute_threads(calibration);
  CoreSlowdown nearest{.active = 1, .threads = threads, .slowdown = 1};
  for (const CoreSlowdown& entry : calibration.cores) {
    if (entry.threads == threads && entry.active <= active && entry.active > nearest.active) {
      nearest = entry;
    }
  }
  if (nearest.active == active) return nearest.slowdown;
  worsen(basis, Basis::extrapolated);
  const double cores = std::max(1, calibration.origin.machine.cores);
  const double held = std::max(cores, double(nearest.active) * threads);
  return nearest.slowdown * std::max(1.0, double(active) * threads / held);
}

void stretch(Profile& profile, int times) {
  for_each_cost(profile, [times](Cost& cost) {
    cost.host = cost.host * times;
    cost.device = cost.device * times;
  });
  profile.input_load = profile.input_load * times;
  profile.input_copy = profile.input_copy * times;
  profile.step = profile.step * times;
}

/// What the profile lacks of having `beside` workers around it.
Profile slowed(const Calibration& calibration, const Profile& measured, int beside, Basis& basis) {
  Profile profile = measured;
  // GPUs share no cores: what one does alone is what it does beside others, but for heat.
  if (profile.beside == beside || !on_cpu(calibration)) return profile;
  worsen(basis, Basis::interpolated);
  const Factor factor = Factor::of(core_slowdown(calibration, beside, basis) /
                                   core_slowdown(calibration, profile.beside, basis));
  const auto slow = [factor](Cost& cost) { cost.device = scale(cost.device, factor); };
  for_each_cost(profile, slow);
  slow(profile.gradient_hook);
  profile.step = scale(profile.step, factor);
  profile.beside = beside;
  return profile;
}

/// The line through two measured batches, at a third.
class BatchLine {
 public:
  BatchLine(int low, int high, int at) : low_(low), high_(high), at_(at) {}

  Time time(Time low, Time high) const {
    const std::int64_t rise = multiply_divide((high - low).ps(), at_ - low_, high_ - low_);
    return std::max(Time{}, low + Time::picoseconds(rise));
  }
  Bytes bytes(Bytes low, Bytes high) const {
    const std::int64_t rise = multiply_divide((high - low).count, at_ - low_, high_ - low_);
    return {std::max<std::int64_t>(0, low.count + rise)};
  }
  Cost cost(const Cost& low, const Cost& high) const {
    Cost result = nearer_low() ? low : high;
    result.device = time(low.device, high.device);
    return result;
  }
  bool nearer_low() const { return std::abs(at_ - low_) <= std::abs(at_ - high_); }

 private:
  std::int64_t low_, high_, at_;
};

Profile between(const Profile& low, const Profile& high, int batch) {
  if (low.layers.size() != high.layers.size()) {
    throw InputError({}, "calibration",
                     fmt::format("profiles of {} at batches {} and {} list different layers",
                                 low.model, low.batch, high.batch),
                     "measure both with one version of the model");
  }
  const BatchLine line(low.batch, high.batch, batch);
  Profile result = line.nearer_low() ? low : high;
  result.batch = batch;
  for (std::size_t i = 0; i < result.layers.size(); ++i) {
    Layer& layer = result.layers[i];
    layer.forward = line.cost(low.layers[i].forward, high.layers[i].forward);
    layer.backward = line.cost(low.layers[i].backward, high.layers[i].backward);
    layer.output = line.bytes(low.layers[i].output, high.layers[i].output);
  }
  result.optimizer = line.cost(low.optimizer, high.optimizer);
  result.step_overhead = line.cost(low.step_overhead, high.step_overhead);
  result.gradient_hook = line.cost(low.gradient_hook, high.gradient_hook);
  result.input_load = line.time(low.input_load, high.input_load);
  result.input_copy = line.time(low.input_copy, high.input_copy);
  result.input_bytes = line.bytes(low.input_bytes, high.input_bytes);
  result.peak = line.bytes(low.peak, high.peak);
  result.step = line.time(low.step, high.step);
  return result;
}

/// With one measured batch only, everything on the device grows with the batch, through the origin.
Profile in_proportion(const Profile& measured, int batch) {
  Profile zero = measured;
  zero.batch = 0;
  for (Layer& layer : zero.layers) layer.forward.device = layer.backward.device = Time{};
  zero.input_load = zero.input_copy = zero.step = Time{};
  zero.input_bytes = Bytes{};
  return between(zero, measured, batch);
}

}  // namespace

bool on_cpu(const Calibration& calibration) {
  return calibration.origin.machine.gpus.empty();
}

int compute_threads(const Calibration& calibration) {
  const auto leading_number = [](const std::string& text) {
    int number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  };
  for (const Profile& profile : calibration.profiles) {
    if (profile.device.find(" thread") == std::string::npos) continue;
    return std::max(1, leading_number(profile.device));
  }
  const auto& environment = calibration.origin.environment;
  const auto found = environment.find("OMP_NUM_THREADS");
  return found == environment.end() ? 1 : std::max(1, leading_number(found->second));
}

ProfileChoice choose_profile(const Calibration& calibration, const ProfileQuery& query) {
  ProfileChoice choice;
  std::vector<const Profile*> candidates = of_model(calibration, query);
  keep_mode(candidates, query, choice.basis);
  const ByBatch by_batch = nearest_beside(candidates, query.beside);
  const auto at = [&](ByBatch::const_iterator entry) {
    return slowed(calibration, *entry->second, query.beside, choice.basis);
  };
  const auto above = by_batch.lower_bound(query.batch);
  if (above != by_batch.end() && above->first == query.batch) {
    choice.profile = at(above);
  } else if (by_batch.size() == 1) {
    choice.profile = in_proportion(at(by_batch.begin()), query.batch);
    worsen(choice.basis, Basis::extrapolated);
  } else {
    const bool outside = above == by_batch.begin() || above == by_batch.end();
    const auto high = above == by_batch.begin() ? std::next(above)
                      : above == by_batch.end() ? std::prev(above)
                                                : above;
    choice.profile = between(at(std::prev(high)), at(high), query.batch);
    worsen(choice.basis, outside ? Basis::extrapolated : Basis::interpolated);
  }
  stretch(choice.profile, query.slow_motion);
  return choice;
}

}  // namespace lockstep
