#include "runner/measure/closing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include "runner/measure/statistics.h"
#include "sim/collectives/bus_bandwidth.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

std::string count(std::size_t n, const std::string& what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string what_a_piece_is(const PieceEstimate& piece, const MeasureOptions& options) {
  if (piece.name == "machine") return "collectives, copies, compute beside them, cores";
  if (piece.name == "collectives") return "by size";
  if (options.device == "cuda") return "profiles, runs and tables on so many";
  return fmt::format("{}{} steps each of {}", options.calibration.empty() ? "profiles; " : "",
                     options.steps, fmt::join(options.strategies, ", "));
}

/// Of the steps asked for, those that a share holds.
int steps_within(const PieceEstimate& piece, Time share, int steps) {
  const double more = (piece.full - piece.least).seconds();
  if (more <= 0 || share >= piece.full) return steps;
  const double part = std::max(0.0, (share - piece.least).seconds() / more);
  return std::clamp(static_cast<int>(std::floor(part * steps)), 1, steps);
}

int asked_repeats(const VisitRecord& record, const MeasureOptions& options) {
  return std::max(record.repeats, options.repeats);
}

void print_collectives(const Measurement& measurement) {
  fmt::print("{:<12} {:>2}  {:>12}  {:>12}  {:>12}\n", "collective", "n", "bytes", "time (p50)",
             "bus");
  for (const CollectiveSample& sample : measurement.collectives) {
    for (const CollectivePoint& point : sample.table.points) {
      fmt::print("{:<12} {:>2}  {:>12}  {:>12}  {:>12}\n", sample.table.collective,
                 sample.table.workers, to_string(point.bytes), to_string(point.p50),
                 to_string(bus_bandwidth(sample.table, point)));
    }
  }
}

std::size_t steps_of(const Run& run) {
  std::size_t steps = 0;
  for (const RunRepeat& repeat : run.repeats) steps += static_cast<std::size_t>(repeat.steps);
  return steps;
}

void print_runs(const std::vector<Run>& runs) {
  fmt::print("{:<14} {:>6} {:<14} {:>2}  {:>11}  {:>5}  {:>7}  {:>7}  {:<8}\n", "model", "batch",
             "strategy", "n", "step (p50)", "steps", "repeats", "apart", "parity");
  for (const Run& run : runs) {
    std::vector<Time> steps;
    for (const RunRepeat& repeat : run.repeats) steps.push_back(repeat.step.p50);
    if (steps.empty()) continue;
    const std::string parity = run.compute == Compute::replay ? "replayed"
                               : run.parity ? fmt::format("{:.1e}", run.parity->relative_l2)
                                            : "-";
    const std::string apart =
        steps.size() > 1 ? fmt::format("{:.1f} %", 100 * repeats_apart(run, 1)) : "-";
    fmt::print("{:<14} {:>6} {:<14} {:>2}  {:>8.2f} ms  {:>5}  {:>7}  {:>7}  {:<8}{}\n", run.model,
               run.batch_per_worker, run.strategy.kind, run.workers, median_time(steps).ms(),
               steps_of(run), steps.size(), apart, parity, run.stable ? "" : "  not stable");
  }
}

void print_servers(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (!run.servers) continue;
    fmt::print("{}: {:.1f} samples/s, updates {:.2f} behind in the mean", run.id,
               run.servers->throughput, mean_staleness(run.servers->staleness));
    std::int64_t all = 0;
    for (const StalenessCount& count : run.servers->staleness) all += count.updates;
    for (const StalenessCount& count : run.servers->staleness) {
      fmt::print(", {}: {:.0f} %", count.staleness,
                 100 * static_cast<double>(count.updates) / static_cast<double>(all));
    }
    fmt::print("\n");
  }
}

void print_stability(const std::vector<Run>& runs) {
  const auto stable = std::ranges::count_if(runs, &Run::stable);
  if (stable == static_cast<std::ptrdiff_t>(runs.size())) {
    fmt::print("Stable: all of {}.\n", count(runs.size(), "run"));
    return;
  }
  fmt::print(
      "Stable: {} of {}. In the others the machine changed its speed within blocks, or repeats "
      "lie\n"
      "more than {:.0f} % apart at equal speed: stop what else runs here and measure again.\n",
      stable, count(runs.size(), "run"), 100 * kRepeatsApart);
}

void print_left_out(const std::vector<Run>& runs, const VisitRecord& record,
                    const MeasureOptions& options) {
  const int asked = asked_repeats(record, options);
  std::size_t missing = 0, wanted = 0;
  for (const Run& run : runs) {
    const std::size_t all =
        static_cast<std::size_t>(asked) * static_cast<std::size_t>(options.steps);
    wanted += all;
    missing += all - std::min(all, steps_of(run));
  }
  if (options.budget == Time{} || (missing == 0 && record.repeats == asked)) return;
  fmt::print("Left out, to keep to {}: {} of {} timed steps", span(options.budget), missing,
             wanted);
  if (record.repeats < asked) fmt::print(", {} of {} repeats", asked - record.repeats, asked);
  fmt::print(".\n");
}

}  // namespace

void print_plan(const VisitRecord& record, const MeasureOptions& options, bool earlier) {
  VisitRecord fresh = record;
  if (earlier) fresh.pieces = as_measured(record);
  fresh.done.clear();
  std::vector<PieceEstimate> all = still_to_do(fresh, 0);
  const bool tight = options.budget > Time{} && options.budget < sum_full(all) + record.start;
  const std::vector<Time> share =
      shares(all, tight ? options.budget - record.start : sum_full(all));
  const int asked = asked_repeats(record, options);
  fmt::print("Would measure on {} ({}):\n",
             count(static_cast<std::size_t>(options.workers), "worker"),
             record.repeats == 1
                 ? "one repeat"
                 : fmt::format("{} repeats, each with workers started anew", record.repeats));
  for (std::size_t i = 0; i < fresh.pieces.size(); ++i) {
    const PieceEstimate& piece = all[i];
    std::string line = fmt::format("  {:<22} {}", piece.name, what_a_piece_is(piece, options));
    const int steps = steps_within(piece, share[i], options.steps);
    if (steps < options.steps) line += fmt::format(" (budget: about {})", steps);
    fmt::print("{:<84} {:>9}\n", line, span(tight ? std::min(share[i], piece.full) : piece.full));
  }
  if (record.repeats < asked) {
    fmt::print("Left out, to keep to {}: {} of {} repeats.\n", span(options.budget),
               asked - record.repeats, asked);
  }
  const Time full = sum_full(all) + record.start;
  const Time total = tight ? std::max(options.budget, sum_least(all) + record.start) : full;
  fmt::print(
      "Takes {}, {}. Nothing was written.\n", about(total),
      earlier ? fmt::format("as long as what was measured into {} on {}", options.out, record.date)
              : "estimated from a few quick timings just now");
  fmt::print("Next: the same without --dry-run\n");
  flush_screen();
}

void print_closing(const Part& whole, const VisitRecord& record, const MeasureOptions& options) {
  const std::string& out = options.out;
  if (options.only_collectives) {
    print_collectives(whole.measurement);
    fmt::print("\nTook {}. Written: {}/measurement.json\n", span(record.spent), out);
    fmt::print("Next: lockstep calibrate PROFILES.json {}/measurement.json -o calibration.json\n",
               out);
    return flush_screen();
  }
  print_runs(whole.runs);
  print_servers(whole.runs);
  fmt::print("\n");
  const Measurement& machine = whole.measurement;
  if (options.calibration.empty()) {
    fmt::print("Machine: {}, {}, {} of compute beside others, {}.\n",
               count(machine.profiles.size(), "profile"),
               count(machine.collectives.size(), "collective table"),
               count(machine.interference.size() + machine.cores.size(), "sample"),
               count(machine.copies.size(), "copy table"));
  }
  print_stability(whole.runs);
  print_left_out(whole.runs, record, options);
  if (!options.calibration.empty()) {
    fmt::print("Took {}. Written: {}/runs.json\n", span(record.spent), out);
    fmt::print("Next: lockstep validate {} {}/runs.json\n", options.calibration, out);
    return flush_screen();
  }
  fmt::print("Took {}. Written: {}/measurement.json, {}/runs.json\n", span(record.spent), out, out);
  fmt::print("Next: lockstep calibrate {}/measurement.json -o calibration.json\n", out);
  fmt::print("      lockstep validate calibration.json {}/runs.json --timelines\n", out);
  flush_screen();
}

void print_bandwidths(const Measurement& measurement, const Machine& machine) {
  struct Best {
    Bandwidth bus;
    Bytes bytes;
  };
  std::map<std::pair<std::string, int>, Best> best;
  for (const CollectiveSample& sample : measurement.collectives) {
    const CollectiveTable& table = sample.table;
    for (const CollectivePoint& point : table.points) {
      const Bandwidth bus = bus_bandwidth(table, point);
      Best& known = best[{table.collective, table.workers}];
      if (bus > known.bus) known = {bus, point.bytes};
    }
  }
  if (best.empty()) return;
  const auto link = link_bandwidth(machine);
  fmt::print("\n{:<14} {:>2}  {:>10}  bus bandwidth, at best\n", "collective", "n", "bytes");
  for (const auto& [of, found] : best) {
    fmt::print("{:<14} {:>2}  {:>10}  {}\n", of.first, of.second, to_string(found.bytes),
               describe_bus(found.bus, link));
  }
}

void flush_screen() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw RunError(fmt::format("standard output cannot be written ({})", std::strerror(errno)));
}

}  // namespace lockstep::runner
