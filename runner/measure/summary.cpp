#include "runner/measure/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runner/measure/statistics.h"

namespace lockstep::runner {

namespace {

std::string outcome(const Run& run) {
  if (run.repeats.empty()) {
    return run.failure ? fmt::format("{} (rank {})", run.failure->what, run.failure->rank) : "-";
  }
  std::vector<Time> steps;
  for (const RunRepeat& repeat : run.repeats) steps.push_back(repeat.step.p50);
  std::string shares;
  if (!run.strategy.split.empty()) {
    shares = fmt::format("  {} on the {}", fmt::join(run.strategy.split, " + "),
                         run.strategy.combine_on_host ? "host" : "device");
  }
  return fmt::format("{:>7.3f} ms {:>8}  {}{}", median_time(steps).ms(), steps.size(),
                     run.parity ? fmt::format("{:.1e}", run.parity->relative_l2) : "-", shares);
}

}  // namespace

std::string run_table(const std::vector<Run>& runs) {
  std::string table = fmt::format("{:<18} {:>5} {:<4} {:<14} {:>2} {:<6} {:<5} {:>10} {:>8}  {}\n",
                                  "model", "batch", "in", "strategy", "n", "launch", "sync",
                                  "step (p50)", "repeats", "parity");
  for (const Run& run : runs) {
    table += fmt::format("{:<18} {:>5} {:<4} {:<14} {:>2} {:<6} {:<5} {}\n", run.model,
                         run.batch_per_worker, run.precision, run.strategy.kind, run.workers,
                         run.graph ? "graph" : "eager", run.sync == Sync::step ? "step" : "none",
                         outcome(run));
  }
  return table;
}

}  // namespace lockstep::runner
