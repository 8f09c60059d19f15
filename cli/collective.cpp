#include <fmt/format.h>

#include <memory>
#include <optional>
#include <stdexcept>

#include "cli/commands.h"
#include "cli/output.h"
#include "sim/analysis/collective_timing.h"
#include "sim/collectives/algorithms.h"
#include "sim/collectives/schedule.h"
#include "sim/core/files.h"
#include "sim/core/units.h"
#include "sim/records/schedule.h"
#include "sim/report/columns.h"
#include "sim/report/schedule_table.h"

namespace lockstep::cli {
namespace {

struct CollectiveOptions {
  std::string kind, algorithm;
  std::uint32_t ranks = 0, root = 0, per_host = 1;
  bool root_given = false;
  std::string bytes, segment, bandwidth, host_bandwidth, latency, reduction;
  std::string json, trace;
};

template <class Value>
Value quantity(const std::string& flag, const std::string& text, Value (*parse)(std::string_view)) {
  try {
    return parse(text);
  } catch (const std::invalid_argument& error) {
    throw InputError({}, flag, error.what());
  }
}

/// Its default where the flag was not given.
template <class Value>
Value optional_quantity(const std::string& flag, const std::string& text,
                        Value (*parse)(std::string_view)) {
  return text.empty() ? Value{} : quantity(flag, text, parse);
}

Bandwidth rate(const std::string& flag, const std::string& text) {
  constexpr Bandwidth kFastest{8'000'000'000'000};
  const Bandwidth bandwidth = optional_quantity(flag, text, parse_bandwidth);
  if (!text.empty() && (bandwidth <= Bandwidth{} || bandwidth > kFastest)) {
    throw InputError({}, flag, "out of range", "above zero, at most 8TB/s");
  }
  return bandwidth;
}

Collective collective_of(const CollectiveOptions& options) {
  Collective collective{.kind = collective_named(options.kind)};
  collective.bytes = quantity("--bytes", options.bytes, parse_bytes);
  collective.step.latency = optional_quantity("--latency", options.latency, parse_time);
  collective.step.reduction = rate("--reduction", options.reduction);
  collective.step.segment = optional_quantity("--segment", options.segment, parse_bytes);
  collective.root = options.root;
  collective.per_host = options.per_host;
  if (options.root_given && !has_root(collective.kind)) {
    throw InputError({}, "--root", fmt::format("{} has no root", options.kind), "leave it out");
  }
  if (options.per_host > options.ranks) {
    throw InputError({}, "--per-host", fmt::format("{} ranks do not fill one host", options.ranks),
                     fmt::format("at most {}", options.ranks));
  }
  const bool timed = !options.bandwidth.empty();
  for (const auto& [flag, text] :
       {std::pair("--latency", &options.latency), std::pair("--reduction", &options.reduction),
        std::pair("--host-bandwidth", &options.host_bandwidth),
        std::pair("--trace", &options.trace)}) {
    if (!timed && !text->empty()) {
      throw InputError({}, flag, "there are no times without a bandwidth", "add --bandwidth 1GB/s");
    }
  }
  return collective;
}

CollectivePlatform platform_of(const CollectiveOptions& options) {
  CollectivePlatform platform{.per_host = options.per_host,
                              .between_hosts = rate("--bandwidth", options.bandwidth),
                              .in_host = std::nullopt};
  if (!options.host_bandwidth.empty()) {
    platform.in_host = rate("--host-bandwidth", options.host_bandwidth);
  } else if (options.per_host > 1) {
    platform.in_host = platform.between_hosts;
  }
  return platform;
}

void refuse_unfit(const Collective& collective) {
  if (collective.algorithm == Algorithm::hierarchical && collective.per_host == 1) {
    throw InputError({}, "--algorithm", "hierarchical has nothing to do in hosts of one rank",
                     "add --per-host 4");
  }
  const bool segments =
      collective.algorithm == Algorithm::chain || collective.algorithm == Algorithm::double_tree;
  if (!segments && collective.step.segment > Bytes{}) {
    throw InputError({}, "--segment",
                     fmt::format("{} has no segments", to_string(collective.algorithm)),
                     "chain and double_tree do");
  }
}

std::string next_steps(const CollectiveOptions& options) {
  if (options.json.empty()) return "\nNext: add --json schedule.json, then lockstep plot\n";
  return fmt::format("\nNext: lockstep plot {} -o figures\n", options.json);
}

ExitCode show(const CollectiveOptions& options, const Collective& collective) {
  refuse_unfit(collective);
  Schedule schedule = schedule_of(collective, options.ranks);
  std::optional<Time> expected;
  if (!options.bandwidth.empty()) {
    time_messages(schedule, platform_of(options));
    expected = expected_time(schedule, platform_of(options));
  }
  if (!options.json.empty()) write_schedule(schedule, options.json);
  if (!options.trace.empty()) write_file(options.trace, to_chrome_trace(schedule));
  print(to_table(schedule, expected) + next_steps(options));
  return ExitCode::done;
}

/// A line for each algorithm that the collective has.
ExitCode compare_algorithms(const CollectiveOptions& options, Collective collective) {
  Columns columns;
  const bool timed = !options.bandwidth.empty();
  std::vector<std::string> head{"algorithm", "steps", "messages", "most a rank sends"};
  if (timed) head.emplace_back("time");
  columns.row(head);
  for (const AlgorithmEntry& entry : algorithms()) {
    if (entry.kind != collective.kind) continue;
    if (entry.algorithm == Algorithm::hierarchical && options.per_host == 1) continue;
    collective.algorithm = entry.algorithm;
    Schedule schedule = schedule_of(collective, options.ranks);
    Bytes most;
    for (const Traffic& rank : traffic(schedule)) most = std::max(most, rank.sent);
    std::vector<std::string> cells{std::string(to_string(entry.algorithm)),
                                   std::to_string(schedule.steps),
                                   std::to_string(schedule.messages.size()), to_string(most)};
    if (timed) {
      time_messages(schedule, platform_of(options));
      cells.push_back(to_string(schedule.time));
    }
    columns.row(cells);
  }
  print(fmt::format("{} of {} among {} ranks\n\n", options.kind, to_string(collective.bytes),
                    options.ranks) +
        columns.text() + "\nNext: choose one with --algorithm\n");
  return ExitCode::done;
}

ExitCode run_collective(const CollectiveOptions& options) {
  Collective collective = collective_of(options);
  check_files({}, {options.json, options.trace});
  if (!options.algorithm.empty()) {
    collective.algorithm = algorithm_named(collective.kind, options.algorithm).algorithm;
    return show(options, collective);
  }
  if (!options.json.empty() || !options.trace.empty()) {
    throw InputError({}, "--json, --trace", "hold one algorithm", "name it with --algorithm");
  }
  return compare_algorithms(options, collective);
}

}  // namespace

void add_collective(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("collective", "Show who sends what to whom in a collective, step by step");
  const auto options = std::make_shared<CollectiveOptions>();
  const auto text = [&](const char* flag, std::string& value, const char* about, const char* type) {
    return command->add_option(flag, value, about)->type_name(type);
  };
  command
      ->add_option("COLLECTIVE", options->kind,
                   "broadcast, scatter, gather, all_gather, reduce, reduce_scatter, all_reduce or "
                   "all_to_all")
      ->required();
  text("--algorithm", options->algorithm, "How; without it, all that it has are compared", "NAME");
  command->add_option("--ranks", options->ranks, "How many take part")
      ->required()
      ->check(CLI::Range(1U, 65'535U))
      ->type_name("N");
  text("--bytes", options->bytes,
       "A rank's array; of all_gather, reduce_scatter and all_to_all the whole one", "SIZE")
      ->required();
  auto* root =
      command->add_option("--root", options->root, "Of a broadcast, scatter, gather, reduce")
          ->type_name("RANK");
  command->add_option("--per-host", options->per_host, "Ranks on a host, which share its cable")
      ->check(CLI::Range(1U, 65'535U))
      ->type_name("N");
  text("--bandwidth", options->bandwidth, "Of a host's cable, each way; without it, no times",
       "RATE");
  text("--host-bandwidth", options->host_bandwidth,
       "Of a rank's link within its host; without it, as the cable", "RATE");
  text("--latency", options->latency, "Of a message", "TIME");
  text("--reduction", options->reduction, "What a rank adds; without it, adding takes no time",
       "RATE");
  text("--segment", options->segment, "Pieces of a chain or double_tree", "SIZE");
  text("--json", options->json, "Write the schedule as JSON, for lockstep plot", "FILE");
  text("--trace", options->trace, "Write it for Perfetto or chrome://tracing", "FILE");
  command->footer(
      "Example:\n  lockstep collective all_reduce --algorithm ring --ranks 4 --bytes 64MiB "
      "--bandwidth 1GB/s --latency 5us --json ring.json");
  command->callback([&action, options, root] {
    options->root_given = root->count() > 0;
    action = [options] { return run_collective(*options); };
  });
}

}  // namespace lockstep::cli
