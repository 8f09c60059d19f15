#include "runner/measure/balance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "runner/measure/bench.h"
#include "runner/measure/gather.h"
#include "runner/measure/statistics.h"
#include "sim/analysis/split.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

constexpr int kWarmups = 2, kTimed = 5;
constexpr int kMostRounds = 6;
constexpr double kClose = 0.05;  // what cores vary by from one look to the next

/// A step of this worker alone beside the others, for its share.
Time own_step(Worker& worker, const std::string& model, int samples) {
  const MeasureOptions& options = worker.options;
  const BenchOptions bench_options{
      .model = model,
      .batch = samples,
      .strategy = {.kind = "single"},
      .data = {.data = options.data, .directory = options.data_directory, .seed = options.seed},
      .precision = options.precision,
      .seed = options.seed,
      .stragglers = options.stragglers,
      .draws = options.seed,
      .spin = worker.spin(),
      .own_core = worker.own_core()};
  Bench bench(bench_options, worker.communicator.get(), *worker.device);
  for (int i = 0; i < kWarmups; ++i) bench.timed_step();
  worker.barrier();
  std::vector<Time> steps;
  for (int i = 0; i < kTimed; ++i) {
    steps.push_back(Time::nanoseconds(bench.timed_step().total));
    worker.progress.beat();
  }
  return median_time(steps);
}

void say(std::size_t number, const SplitRound& round) {
  std::vector<std::string> times;
  for (const Time time : round.times) times.push_back(fmt::format("{:.1f}", time.ms()));
  fmt::print(stderr, "split, round {}: {} samples, {} ms, {:.0f} % apart\n", number,
             fmt::join(round.shares, " + "), fmt::join(times, ", "), 100 * apart(round.times));
}

}  // namespace

std::vector<int> balanced_shares(std::size_t workers, int batch, const ShareTimes& times,
                                 bool tell) {
  std::vector<int> shares(workers, batch);
  std::vector<SplitRound> rounds;
  while (std::ssize(rounds) < kMostRounds &&
         std::ranges::find(rounds, shares, &SplitRound::shares) == rounds.end()) {
    rounds.push_back({.shares = shares, .times = times(shares)});
    if (tell) say(rounds.size(), rounds.back());
    if (apart(rounds.back().times) <= kClose) break;
    shares = rebalanced(rounds.back());
  }
  const auto longest = [](const SplitRound& round) { return std::ranges::max(round.times); };
  return std::ranges::min_element(rounds, {}, longest)->shares;
}

std::vector<int> balanced_shares(Worker& worker, const std::string& model, int batch) {
  const auto look = [&](const std::vector<int>& shares) {
    const Time mine = own_step(worker, model, shares[static_cast<std::size_t>(worker.rank())]);
    std::vector<Time> times;
    for (const auto& row : gather(worker.communicator.get(), {mine.ns()}, worker.device->torch())) {
      times.push_back(Time::nanoseconds(row.front()));
    }
    return times;
  };
  return balanced_shares(static_cast<std::size_t>(worker.size()), batch, look, worker.first());
}

void check_split(const MeasureOptions& options, int workers) {
  const std::vector<int>& split = options.split;
  if (split.empty()) return;
  if (std::ssize(split) != workers) {
    throw InputError({}, "--split", fmt::format("{} shares for {} workers", split.size(), workers),
                     "one for each");
  }
  const int sum = std::accumulate(split.begin(), split.end(), 0);
  for (const int batch : options.batches) {
    if (batch * workers == sum) continue;
    throw InputError({}, "--split",
                     fmt::format("{} add up to {}, {} workers at batch {} have {}",
                                 fmt::join(split, " + "), sum, workers, batch, batch * workers),
                     "shares of all their samples");
  }
}

}  // namespace lockstep::runner
