#include "runner/measure/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep::runner {

namespace {

constexpr Time kBlock = Time::milliseconds(200);
constexpr int kMostPerBlock = 12;
constexpr int kHalvings = 50;

Time total(const std::vector<Time>& times) {
  return std::accumulate(times.begin(), times.end(), Time());
}

}  // namespace

int steps_per_block(Time step, int steps) {
  const auto fitting = kBlock.ps() / std::max<std::int64_t>(step.ps(), 1);
  return static_cast<int>(std::min<std::int64_t>(
      std::clamp<std::int64_t>(fitting, 1, kMostPerBlock), std::max(1, steps)));
}

PieceEstimate estimate_piece(const std::string& name, const QuickPass& quick, double scale,
                             int steps) {
  const int block = steps_per_block(Time::from_seconds(quick.step.seconds() * scale), steps);
  const int rounds = (steps + block - 1) / block;
  const double round = block * quick.steps.seconds() * scale + quick.speeds.seconds();
  const double fixed = std::max(0.0, (quick.whole - quick.steps - quick.speeds).seconds()) * scale;
  return {.name = name,
          .least = Time::from_seconds(fixed + round),
          .full = Time::from_seconds(fixed + rounds * round)};
}

std::vector<Time> shares(const std::vector<PieceEstimate>& pieces, Time available) {
  const double full = sum_full(pieces).seconds();
  const double have = available.seconds();
  const auto shared = [&](double unit) {
    std::vector<Time> result;
    for (const PieceEstimate& piece : pieces) {
      const double more = (piece.full - piece.least).seconds();
      result.push_back(piece.least + Time::from_seconds(std::min(more, unit * std::cbrt(more))));
    }
    return result;
  };
  if (have > full && full > 0) {
    std::vector<Time> result;
    for (const PieceEstimate& piece : pieces) {
      result.push_back(Time::from_seconds(piece.full.seconds() * have / full));
    }
    return result;
  }
  double low = 0, high = std::pow(full, 2.0 / 3);  // at which everybody has its full time
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (total(shared(middle)) <= available ? low : high) = middle;
  }
  return shared(low);
}

Time sum_least(const std::vector<PieceEstimate>& pieces) {
  Time sum;
  for (const PieceEstimate& piece : pieces) sum += piece.least;
  return sum;
}

Time sum_full(const std::vector<PieceEstimate>& pieces) {
  Time sum;
  for (const PieceEstimate& piece : pieces) sum += piece.full;
  return sum;
}

std::string about(Time time) {
  const double s = time.seconds();
  if (s < 1) return "about 1 s";
  if (s < 10) return fmt::format("about {:.0f} s", s);
  const auto fives = static_cast<long>(std::lround(s / 5)) * 5;
  if (fives < 60) return fmt::format("about {} s", fives);
  if (fives < 600) return fmt::format("about {} min {:02} s", fives / 60, fives % 60);
  const auto minutes = std::lround(s / 60);
  if (minutes < 60) return fmt::format("about {} min", minutes);
  return fmt::format("about {} h {:02} min", minutes / 60, minutes % 60);
}

std::string span(Time time) {
  const double s = time.seconds();
  if (s < 59.95) return fmt::format("{:.1f} s", s);
  const auto whole = std::lround(s);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace lockstep::runner
