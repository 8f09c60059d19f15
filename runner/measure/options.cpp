#include "runner/measure/options.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "runner/measure/batches.h"
#include "runner/measure/options_check.h"
#include "runner/measure/straggler.h"
#include "runner/models/zoo.h"
#include "runner/strategies/names.h"
#include "sim/core/error.h"
#include "sim/core/units.h"
#include "sim/workload/fusion.h"

namespace lockstep::runner {

namespace {

constexpr const char* kExample =
    "Example: lockstep-measure --workers 2 --models vgg11 --batches 16,32 -o measured\n"
    "Next:    lockstep calibrate measured/measurement.json -o calibration.json\n"
    "Under torchrun, mpirun or srun every worker runs the same command; RANK, WORLD_SIZE,\n"
    "MASTER_ADDR and MASTER_PORT are read.";

/// What has to be turned into something else than CLI11 gives.
struct Words {
  std::string bucket_cap = "25MiB", first_bucket_cap = "1MiB";
  std::string compute = "real";
  std::string staleness = "0";
  std::vector<std::string> batches{"32"};
  std::string precision = "fp32";
  bool no_batch_norm = false, dropout = false;
  std::vector<std::string> stragglers, slow_links, split;
  std::vector<std::string> combine{"device"};
  std::string link, link_latency, budget;
  std::string preset = "v0.21", cycle_time, fusion_threshold;
  std::string compression = "none";
};

/// `--demo` is a set of values, which other flags may still change.
void take_demo_values(MeasureOptions& options, Words& words) {
  options.models = {"small_cnn", "vgg11"};
  words.batches = {"16", "32"};
  options.steps = 20;
  words.budget = "165s";
}

Bytes cap_of(const std::string& flag, const std::string& text) {
  try {
    const Bytes cap = parse_bytes(text);
    if (cap > Bytes{}) return cap;
  } catch (const std::invalid_argument& error) {
    throw InputError({}, flag, error.what(), "as in 25MiB");
  }
  throw InputError({}, flag, "a bucket holds something", "as in 25MiB");
}

Bandwidth link_of(const std::string& flag, const std::string& text) {
  try {
    const Bandwidth link = parse_bandwidth(text);
    if (link > Bandwidth{}) return link;
  } catch (const std::invalid_argument& error) {
    throw InputError({}, flag, error.what(), "as in 1Gbit/s");
  }
  throw InputError({}, flag, "a link carries something", "as in 1Gbit/s");
}

Time budget_of(const std::string& text) {
  try {
    const Time budget = parse_time(text);
    if (budget > Time{}) return budget;
  } catch (const std::invalid_argument& error) {
    throw InputError({}, "--budget", error.what(), "as in 2min");
  }
  throw InputError({}, "--budget", "nothing takes no time", "as in 2min");
}

std::optional<std::int64_t> staleness_of(const std::string& text) {
  if (text == "none") return std::nullopt;
  std::int64_t bound = -1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, bound);
  if (error == std::errc() && stop == end && bound >= 0 && bound <= 1'000'000) return bound;
  throw InputError({}, "--staleness", fmt::format("\"{}\" is no bound", text),
                   "none, 0 for synchronous steps, or by how many a worker may be ahead");
}

int batch_of(const std::string& text) {
  int batch = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, batch);
  if (error == std::errc() && stop == end && batch >= 2 && batch <= kLargestBatch) return batch;
  throw InputError({}, "--batches", fmt::format("\"{}\" is no number of samples", text),
                   fmt::format("2 to {}, as in 32,128; or auto", kLargestBatch));
}

/// "auto", or a list.
void take_batches(const std::vector<std::string>& words, MeasureOptions& options) {
  options.search_batches = words == std::vector<std::string>{"auto"};
  options.batches.clear();
  if (options.search_batches) {
    options.batches.push_back(kFirstSearched);
  } else {
    for (const std::string& word : words) options.batches.push_back(batch_of(word));
  }
}

Time latency_of(const std::string& text) {
  constexpr Time kMost = Time::milliseconds(1000);  // as in scenarios
  try {
    const Time latency = parse_time(text);
    if (latency <= kMost) return latency;
  } catch (const std::invalid_argument& error) {
    throw InputError({}, "--link-latency", error.what(), "as in 20us");
  }
  throw InputError({}, "--link-latency", "a link has at most 1s", "as in 20us");
}

/// "1=200Mbit/s"
SlowLink slow_link_of(const std::string& text) {
  const auto equals = text.find('=');
  int host = -1;
  const char* end = text.data() + std::min(equals, text.size());
  const auto [stop, error] = std::from_chars(text.data(), end, host);
  if (equals == std::string::npos || error != std::errc() || stop != end || host < 0) {
    throw InputError({}, "--slow-link", fmt::format("\"{}\" names no host", text),
                     "as in 1=200Mbit/s");
  }
  return {.host = host, .link = link_of("--slow-link", text.substr(equals + 1))};
}

/// What is given replaces the preset's.
void take_horovod(const Words& words, StrategyOptions& strategy) {
  take_preset(words.preset, "--horovod-preset", strategy);
  try {
    if (!words.cycle_time.empty()) strategy.cycle_time = parse_time(words.cycle_time);
  } catch (const std::invalid_argument& error) {
    throw InputError({}, "--cycle-time", error.what(), "as in 1ms");
  }
  if (strategy.cycle_time < kShortestCycle || strategy.cycle_time > kLongestCycle) {
    throw InputError({}, "--cycle-time", "a cycle takes 1us to 10s", "as in 1ms");
  }
  try {
    if (!words.fusion_threshold.empty()) {
      strategy.fusion_threshold = parse_bytes(words.fusion_threshold);
    }
  } catch (const std::invalid_argument& error) {
    throw InputError({}, "--fusion-threshold", error.what(), "as in 128MiB; 0B fuses nothing");
  }
}

/// "measured", or a share for each worker.
void take_split(const std::vector<std::string>& words, MeasureOptions& options) {
  options.split_measured = words == std::vector<std::string>{"measured"};
  if (options.split_measured) return;
  for (const std::string& word : words) {
    int share = 0;
    const char* end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, share);
    if (error != std::errc() || stop != end || share < 1 || share > kLargestBatch) {
      throw InputError({}, "--split", fmt::format("\"{}\" is no share", word),
                       "samples of each worker, as in 24,8; or measured");
    }
    options.split.push_back(share);
  }
}

void take_words(const Words& words, MeasureOptions& options) {
  options.of_strategies.bucket_cap = cap_of("--bucket-cap", words.bucket_cap);
  options.of_strategies.first_bucket_cap = cap_of("--first-bucket-cap", words.first_bucket_cap);
  take_horovod(words, options.of_strategies);
  if (words.compression == "bf16") options.of_strategies.compression = Compression::bf16;
  if (options.of_strategies.no_sync && options.of_strategies.accumulate == 1) {
    throw InputError({}, "--no-sync", "there is no pass that could do without", "--accumulate 4");
  }
  if (!words.link.empty()) options.link = link_of("--link", words.link);
  if (!words.link_latency.empty()) {
    if (words.link.empty()) {
      throw InputError({}, "--link-latency", "is stated beside a rate", "--link 1Gbit/s");
    }
    options.link_latency = latency_of(words.link_latency);
  }
  for (const std::string& text : words.slow_links) {
    options.slow_links.push_back(slow_link_of(text));
  }
  for (const std::string& text : words.stragglers) {
    options.stragglers.push_back(parse_straggler(text));
  }
  for (std::string& model : options.models) {
    if (words.no_batch_norm) model = without_batch_norm(model);
    if (words.dropout) model = with_dropout(model);
  }
  take_batches(words.batches, options);
  take_split(words.split, options);
  options.combine_on_host.clear();
  for (const std::string& place : words.combine) {
    options.combine_on_host.push_back(place == "host");
  }
  options.precision = parse_precision(words.precision);
  options.of_strategies.staleness = staleness_of(words.staleness);
  options.compute = words.compute == "replay" ? Compute::replay : Compute::real;
}

bool asks_for_demo(int argc, const char* const* argv) {
  const auto* end = argv + argc;
  return std::find(argv, end, std::string("--demo")) != end;
}

void add_what(CLI::App& app, MeasureOptions& options, Words& words) {
  app.add_option("--models,--model", options.models,
                 fmt::format("networks to train, of {}", fmt::join(model_names(), ", ")))
      ->delimiter(',')
      ->capture_default_str();
  app.add_flag("--no-batchnorm", words.no_batch_norm, "their variants without batch normalisation");
  app.add_flag("--dropout", words.dropout, "their variants with dropout");
  app.add_option("--batches,--batch", words.batches,
                 "samples per worker and step; auto (GPUs): 32, 128, ... until memory is full")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--precision", words.precision,
                 "fp32 (no TF32), tf32 (GPUs: in products and convolutions), or bf16 (autocast of "
                 "forward; parameters and gradients stay fp32)")
      ->check(CLI::IsMember(precision_names()))
      ->capture_default_str();
  app.add_option(
         "--strategies,--strategy", options.strategies,
         "of single, all_reduce, gather_scatter, ddp, horovod, parameter_server (cores), "
         "heterogeneous (cores, or GPUs with --cpu-workers), data_parallel (GPUs: single on one, "
         "ddp on all numbers of them, the others on 2, 4, 8, ...)")
      ->delimiter(',')
      ->check(CLI::IsMember(strategy_names()))
      ->capture_default_str();
  app.add_option("--bucket-cap", words.bucket_cap, "of ddp: a bucket is closed at this size")
      ->capture_default_str();
  app.add_option("--first-bucket-cap", words.first_bucket_cap, "of ddp's first bucket")
      ->capture_default_str();
  app.add_option("--servers", options.of_strategies.servers,
                 "of parameter_server: processes beside the workers that hold the parameters")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--staleness", words.staleness,
                 "of parameter_server: iterations that a worker may be ahead of the slowest; 0: "
                 "synchronous, none: no bound")
      ->capture_default_str();
  app.add_option("--accumulate", options.of_strategies.accumulate,
                 "of ddp: passes of a step, each over a batch of its own")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_flag("--no-sync", options.of_strategies.no_sync,
               "of ddp: all passes of a step but the last reduce nothing");
  app.add_flag("--find-unused-parameters", options.of_strategies.find_unused_parameters,
               "of ddp: buckets as first made, and a bitmap of parameters beside them");
  app.add_option("--compression", words.compression, "of ddp: gradients are sent as bf16")
      ->check(CLI::IsMember({"none", "bf16"}))
      ->capture_default_str();
  app.add_option("--horovod-preset", words.preset,
                 "of horovod: v0.21 (cycles of 1 ms, fusion up to 128 MiB), v0.20 (5 ms, 64 MiB)")
      ->capture_default_str();
  app.add_option("--cycle-time", words.cycle_time, "of horovod, instead of the preset's")
      ->type_name("TIME");
  app.add_option("--fusion-threshold", words.fusion_threshold,
                 "of horovod, instead of the preset's; 0B: nothing is fused")
      ->type_name("BYTES");
  app.add_option("--split", words.split,
                 "of heterogeneous: samples of each worker, of batch x workers; or measured: found "
                 "by their speeds")
      ->delimiter(',')
      ->type_name("24,8");
  app.add_option("--combine", words.combine,
                 "of heterogeneous beside GPUs: where gradients are added, device or host, or both "
                 "in turn")
      ->delimiter(',')
      ->check(CLI::IsMember({"device", "host"}))
      ->capture_default_str();
  app.add_flag("--collectives", options.only_collectives, "collectives only, by size");
  app.add_option("--seed", options.seed, "of parameters and samples")->capture_default_str();
  app.add_option("--data", options.data, "of synthetic, fashion-mnist, cifar10")
      ->check(CLI::IsMember({"synthetic", "fashion-mnist", "cifar10"}))
      ->capture_default_str();
  app.add_option("--data-dir", options.data_directory, "folder of the data set's files");
  app.add_option("--loaders", options.loaders,
                 "threads of a worker that load batches ahead (0: it loads them itself)")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
}

void add_how(CLI::App& app, MeasureOptions& options, Words& words) {
  app.add_option("--compute", words.compute,
                 "real, or replay: wait as long as a calibration says; communication is real")
      ->check(CLI::IsMember({"real", "replay"}))
      ->capture_default_str();
  app.add_option("--slow-motion", options.slow_motion,
                 "a replay waits so many times as long: with links as many times slower, what "
                 "messages cost the cores counts for less")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--calibration", options.calibration,
                 "only runs, no profiles: to be compared with this, or replayed from it")
      ->type_name("FILE");
  app.add_option("--straggler", words.stragglers,
                 "slows a worker: rank=1,factor=1.5 or rank=1,delay=20ms,phase=backward; or as in "
                 "a scenario, all or one, drawn: {worker: all, slowdown: {kind: log_normal, ...}}")
      ->allow_extra_args(false)
      ->type_name("SPEC");
  app.add_option("--link", words.link, "rate of each host's link, for the records (1Gbit/s)")
      ->type_name("RATE");
  app.add_option("--link-latency", words.link_latency,
                 "a message's time to the switch, beside what it takes within a host (20us)")
      ->type_name("TIME");
  app.add_option("--slow-link", words.slow_links, "a host with another: 1=200Mbit/s")
      ->allow_extra_args(false)
      ->type_name("HOST=RATE");
}

void add_where_and_how_long(CLI::App& app, MeasureOptions& options, Words& words) {
  app.add_option("--device", options.device, "of cpu, cuda (one worker per GPU, 1 .. --workers)")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--workers", options.workers,
                 "processes to start on this host (0: 2 on cores, as many as GPUs)")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--cpu-workers", options.cpu_workers,
                 "workers on cores beside the GPUs, for --strategies heterogeneous")
      ->check(CLI::Range(0, 1))
      ->capture_default_str();
  app.add_option("--threads", options.threads,
                 "compute threads of a worker on cores (0: cores / workers; beside GPUs all but "
                 "two for each)")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  app.add_option("--steps", options.steps, "timed steps of a run and repeat")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--repeats", options.repeats, "times that the workers are started anew")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--budget", words.budget,
                 "time in all, as in 2min: fewer steps and repeats where it holds no more")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--silence", options.silence_seconds,
                 "seconds after which a worker that does nothing is taken to hang")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app.add_option("-o,--out", options.out, "folder for what is measured")->capture_default_str();
  app.add_option("--block", options.block_ms, "milliseconds of steps in a timed block on GPUs")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_flag("--dry-run", options.dry_run, "say what would be measured and how long it takes");
  app.add_flag("--resume", options.resume, "go on with the unfinished measurement in --out");
  app.add_flag("--verbose", options.verbose, "say each thing that is measured, on stderr");
}

/// The value of each flag that decides what is measured, as it was given or by default. A path
/// counts by its last part: folders move.
std::map<std::string, std::string> settings_of(const CLI::App& app) {
  constexpr auto kNoSettings =
      std::to_array<std::string_view>({"help", "version", "demo", "out", "verbose", "silence",
                                       "data-dir", "dry-run", "resume", "repeat", "visit"});
  std::map<std::string, std::string> settings;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty()) continue;
    const std::string name = option->get_lnames().front();
    if (std::ranges::find(kNoSettings, std::string_view(name)) != kNoSettings.end()) continue;
    std::string value = option->get_default_str();
    if (option->count() > 0) value = fmt::format("{}", fmt::join(option->results(), ","));
    if (value.starts_with("[") && value.ends_with("]")) value = value.substr(1, value.size() - 2);
    if (name == "calibration") value = std::filesystem::path(value).filename().string();
    if (!value.empty()) settings[name] = value;
  }
  return settings;
}

/// A record tells what was run, not where somebody keeps files, nor what the launcher added.
std::string command_of(int argc, const char* const* argv) {
  std::string command = "lockstep-measure";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--repeat" || word == "--visit") {
      ++i;
    } else if (word == "--resume") {
      continue;
    } else if (word.starts_with("/")) {
      command += " " + std::filesystem::path(word).filename().string();
    } else {
      command += " " + word;
    }
  }
  return command;
}

}  // namespace

int servers_beside(const MeasureOptions& options) {
  const auto& named = options.strategies;
  const bool serves = std::ranges::find(named, "parameter_server") != named.end();
  return serves ? options.of_strategies.servers : 0;
}

StrategyOptions options_of(const std::string& kind, const MeasureOptions& options) {
  const StrategyOptions& all = options.of_strategies;
  StrategyOptions mine;
  mine.kind = kind;
  if (kind == "ddp") {
    mine.bucket_cap = all.bucket_cap;
    mine.first_bucket_cap = all.first_bucket_cap;
    mine.accumulate = all.accumulate;
    mine.no_sync = all.no_sync;
    mine.find_unused_parameters = all.find_unused_parameters;
    mine.compression = all.compression;
  } else if (kind == "horovod") {
    mine.cycle_time = all.cycle_time;
    mine.fusion_threshold = all.fusion_threshold;
    mine.hierarchical = all.hierarchical;
  } else if (kind == "parameter_server") {
    mine.servers = all.servers;
    mine.staleness = all.staleness;
  } else if (kind == "heterogeneous") {
    mine.split = options.split;
  }
  return mine;
}

MeasureOptions parse_options(int argc, const char* const* argv) {
  MeasureOptions options;
  Words words;
  if (asks_for_demo(argc, argv)) take_demo_values(options, words);
  bool demo = false;
  CLI::App app{"Measures this machine for lockstep: profiles by layer, collectives, real runs.",
               "lockstep-measure"};
  app.footer(kExample);
  app.set_version_flag("--version", std::string("lockstep-measure ") + LOCKSTEP_VERSION);
  app.add_flag("--demo", demo, "small_cnn and vgg11 at batch 16 and 32, about three minutes");
  add_what(app, options, words);
  add_how(app, options, words);
  add_where_and_how_long(app, options, words);
  app.add_option("--repeat", options.repeat)->group("");
  app.add_option("--visit", options.visit)->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) std::exit(app.exit(error));  // --help, --version
    throw InputError({}, "", error.what(), "lockstep-measure --help shows the flags");
  }
  take_words(words, options);
  options.budget_is_wish = demo && app.count("--budget") == 0;
  const bool wish = options.budget_is_wish && options.device == "cpu";
  if (wish || app.count("--budget") > 0) options.budget = budget_of(words.budget);
  check_together(options);
  if (options.workers == 0 && options.device == "cpu") options.workers = 2;
  if (options.dry_run && options.resume) {
    throw InputError({}, "--dry-run", "does nothing that --resume could go on with", "one of them");
  }
  options.settings = settings_of(app);
  check_servers(options);
  options.command = command_of(argc, argv);
  return options;
}

}  // namespace lockstep::runner
