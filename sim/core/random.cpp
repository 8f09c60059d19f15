#include "sim/core/random.h"

#include <Random123/philox.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sim/core/error.h"

namespace lockstep {

namespace {

using Philox = r123::Philox4x32;

Philox::ctr_type bits_of(const DrawKey& key) {
  const Philox::ctr_type counter{{key.worker, key.iteration, key.task, 0}};
  const Philox::key_type seed{
      {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)}};
  return Philox{}(counter, seed);
}

}  // namespace

double standard_normal(const DrawKey& key) {
  const Philox::ctr_type bits = bits_of(key);
  // (0, 1]: the logarithm of zero does not exist.
  const double u = (static_cast<double>(bits[0]) + 1) * 0x1p-32;
  const double v = static_cast<double>(bits[1]) * 0x1p-32;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

double uniform(const DrawKey& key) {
  const Philox::ctr_type bits = bits_of(key);
  const std::uint64_t whole = std::uint64_t{bits[2]} << 32 | bits[3];
  return (static_cast<double>(whole >> 11) + 1) * 0x1p-53;
}

// For a log-normal with logarithmic deviation s: (deviation / mean)^2 = exp(s^2) - 1.
double sigma_of(double relative_deviation) {
  return std::sqrt(std::log1p(relative_deviation * relative_deviation));
}

LogNormal::LogNormal(double relative_deviation) : sigma_(sigma_of(relative_deviation)) {
  LOCKSTEP_ASSERT(relative_deviation >= 0, "a deviation is not below zero");
}

Factor LogNormal::draw(const DrawKey& key) const {
  if (!varies()) return Factor{};
  constexpr double kLargest = 1e6;  // far beyond any noise; keeps products of factors in range
  return Factor::of(std::min(std::exp(sigma_ * standard_normal(key)), kLargest));
}

}  // namespace lockstep
