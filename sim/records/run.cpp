#include "sim/records/run.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "sim/core/error.h"
#include "sim/core/files.h"
#include "sim/records/describe.h"
#include "sim/records/json_text.h"

namespace lockstep {

template <class Io>
void describe(Io& io, Described<Io, StrategyOptions>& strategy) {
  io.field("kind", strategy.kind);
  io.group("options", [&](auto& options) {
    options.field("bucket_cap_bytes", strategy.bucket_cap);
    options.field("first_bucket_cap_bytes", strategy.first_bucket_cap);
    options.field("broadcast_buffers", strategy.broadcast_buffers);
    newer(options, "gil", [&] { options.field("gil", strategy.gil); });
    newer(options, "cycle_ns", [&] { options.field("cycle_ns", strategy.cycle_time); });
    newer(options, "fusion_threshold_bytes",
          [&] { options.field("fusion_threshold_bytes", strategy.fusion_threshold); });
    newer(options, "hierarchical", [&] { options.field("hierarchical", strategy.hierarchical); });
    newer(options, "accumulate",
          [&] { options.field("accumulate", strategy.accumulate, kAtLeastOne); });
    newer(options, "no_sync", [&] { options.field("no_sync", strategy.no_sync); });
    newer(options, "find_unused_parameters",
          [&] { options.field("find_unused_parameters", strategy.find_unused_parameters); });
    newer(options, "compression",
          [&] { options.name("compression", strategy.compression, kCompressionNames); });
    if (Io::kReading || strategy.kind == "parameter_server") {
      newer(options, "servers", [&] { options.field("servers", strategy.servers, kAtLeastOne); });
      newer(options, "staleness", [&] { options.field("staleness", strategy.staleness); });
      newer(options, "server_bytes_per_second", [&] {
        options.field("server_bytes_per_second", strategy.server_rate.bytes_per_second, kLinkRates);
      });
    }
    if (Io::kReading || !strategy.split.empty()) {
      newer(options, "split", [&] { options.field("split", strategy.split); });
    }
    if (Io::kReading || strategy.combine_on_host) {
      newer(options, "combine_on_host",
            [&] { options.field("combine_on_host", strategy.combine_on_host); });
    }
  });
}

constexpr std::string_view kVariabilityNames[] = {"constant", "log_normal", "pareto", "periodic",
                                                  "samples"};

template <class Io>
void describe(Io& io, Described<Io, Variability>& variability) {
  io.name("kind", variability.kind, kVariabilityNames);
  io.field("sigma", variability.sigma);
  io.field("shape", variability.shape);
  io.field("every", variability.every);
  io.field("period_ns", variability.period);
  io.field("high", variability.high);
  io.field("low", variability.low);
  io.field("aligned", variability.aligned);
  io.field("listed", variability.listed);
  io.field("values", variability.values);
  io.field("least", variability.least);
  if constexpr (Io::kReading) {
    const std::string_view fault = fault_of(variability);
    if (!fault.empty()) io.at().fail(fault);
  }
}

template <class Io>
void describe(Io& io, Described<Io, InjectedStraggler>& straggler) {
  io.field("rank", straggler.rank);
  io.field("factor", straggler.factor, Range{1, 1e6});
  io.field("delay_ns", straggler.delay);
  io.name("part", straggler.part, kStepPartNames);
  if (Io::kReading || straggler.all) newer(io, "all", [&] { io.field("all", straggler.all); });
  const auto varying = [&](std::string_view key, auto& variability) {
    if (Io::kReading || varies(variability)) newer(io, key, [&] { io.field(key, variability); });
  };
  varying("factor_varies", straggler.factor_varies);
  varying("delay_varies", straggler.delay_varies);
}

template <class Io>
void describe(Io& io, Described<Io, SlowLink>& slow) {
  io.field("host", slow.host);
  io.field("bytes_per_second", slow.link.bytes_per_second, kLinkRates);
}

template <class Io>
void describe(Io& io, Described<Io, RunDevices>& devices) {
  io.field("calibration", devices.calibration);
  io.field("count", devices.count, kAtLeastOne);
}

template <class Io>
void describe(Io& io, Described<Io, RunRank>& rank) {
  io.field("rank", rank.rank);
  io.field("device", rank.device);
  io.field("step_ns", rank.step);
  io.field("forward_ns", rank.forward);
  io.field("backward_ns", rank.backward);
  io.field("optimizer_ns", rank.optimizer);
  io.field("buckets", rank.buckets);
  io.field("peak_bytes", rank.peak);
}

template <class Io>
void describe(Io& io, Described<Io, Parity>& parity) {
  io.field("relative_l2", parity.relative_l2);
  io.field("steps", parity.steps);
}

template <class Io>
void describe(Io& io, Described<Io, Failure>& failure) {
  io.field("rank", failure.rank);
  io.field("what", failure.what);
  io.field("after_steps", failure.after_steps);
}

namespace {

/// Raw samples of the repeats of a file, in the file beside it; a repeat says "name#index".
struct Samples {
  std::string name;
  std::vector<std::vector<Time>> lists;
};

struct SampleList {
  std::vector<Time> step;
};

template <class Io>
void describe_samples_reference(Io& io, Described<Io, RunRepeat>& repeat, Samples& samples) {
  std::string reference;
  if constexpr (Io::kReading) {
    io.field("samples", reference);
    if (reference.empty()) return;
    const std::string lead = samples.name + "#";
    std::size_t index = samples.lists.size();
    if (reference.starts_with(lead) && reference.size() < lead.size() + 8 &&
        reference.find_first_not_of("0123456789", lead.size()) == std::string::npos &&
        reference.size() > lead.size()) {
      index = std::stoul(reference.substr(lead.size()));
    } else {
      io.at().child("samples").fail(fmt::format("\"{}\" names no list of samples", reference),
                                    fmt::format("use \"{}0\"", lead));
    }
    if (samples.lists.empty()) return;  // the samples may stay behind when a record is copied
    if (index >= samples.lists.size()) {
      io.at().child("samples").fail(
          fmt::format("the samples file holds {} lists", samples.lists.size()));
    }
    repeat.samples = samples.lists[index];
  } else {
    if (!repeat.samples.empty()) {
      reference = fmt::format("{}#{}", samples.name, samples.lists.size());
      samples.lists.push_back(repeat.samples);
    }
    io.field("samples", reference);
  }
}

template <class Io>
void describe_repeat(Io& io, Described<Io, RunRepeat>& repeat, Samples& samples) {
  io.field("process", repeat.process);
  io.field("warmup", repeat.warmup);
  io.field("steps", repeat.steps);
  io.field("step_ns", repeat.step);
  io.field("input_ns", repeat.input);
  io.field("speed_index", repeat.speed_index);
  newer(io, "speed_change", [&] { io.field("speed_change", repeat.speed_change); });
  describe_samples_reference(io, repeat, samples);
}

template <class Io, class Record>
void describe_run(Io& io, Record& run, Samples& samples) {
  io.field("id", run.id);
  describe_origin(io, run.origin);
  io.field("calibration", run.calibration);
  io.field("model", run.model);
  io.field("batch_per_worker", run.batch_per_worker, kBatch);
  io.field("workers", run.workers, kWorkers);
  if (Io::kReading || !run.devices.empty()) {
    newer(io, "devices", [&] { io.field("devices", run.devices); });
  }
  io.field("strategy", run.strategy);
  io.field("precision", run.precision);
  io.name("sync", run.sync, kSyncNames);
  io.field("graph", run.graph);
  newer(io, "compute", [&] { io.name("compute", run.compute, kComputeNames); });
  newer(io, "slow_motion", [&] { io.field("slow_motion", run.slow_motion, kAtLeastOne); });
  newer(io, "hosts", [&] { io.field("hosts", run.hosts, kAtLeastOne); });
  newer(io, "emulated", [&] { io.field("emulated", run.emulated); });
  newer(io, "link_bytes_per_second",
        [&] { io.field("link_bytes_per_second", run.link.bytes_per_second, kLinkRates); });
  newer(io, "link_latency_ns", [&] { io.field("link_latency_ns", run.link_latency); });
  newer(io, "slow_links", [&] { io.field("slow_links", run.slow_links); });
  newer(io, "stragglers", [&] { io.field("stragglers", run.stragglers); });
  io.group("dataset", [&](auto& dataset) {
    dataset.field("name", run.dataset);
    dataset.field("samples", run.dataset_samples);
    newer(dataset, "loaders", [&] { dataset.field("loaders", run.loaders); });
  });
  io.field("stable", run.stable);
  io.list("repeats", run.repeats,
          [&](auto& inner, auto& repeat) { describe_repeat(inner, repeat, samples); });
  io.field("ranks", run.ranks);
  io.field("parity", run.parity);
  if (Io::kReading || run.servers) {
    newer(io, "servers", [&] { io.field("servers", run.servers); });
  }
  io.field("failure", run.failure);
}

Samples read_samples(const std::string& runs_file) {
  const std::string file = samples_file(runs_file);
  Samples samples{std::filesystem::path(file).filename().string(), {}};
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return samples;
  const nlohmann::json document = read_json(file);
  const JsonPath at(file);
  JsonReader in(document, at);
  check_header(in, "samples");
  std::vector<SampleList> lists;
  in.list("lists", lists, [](auto& inner, auto& list) { inner.field("step_ns", list.step); });
  in.finish();
  for (SampleList& list : lists) samples.lists.push_back(std::move(list.step));
  return samples;
}

/// The samples go first: a run never names samples that are not there.
void write_both(JsonWriter& out, const Samples& samples, const std::string& file) {
  const std::string text = to_text(out.take());
  if (!samples.lists.empty()) {
    std::vector<SampleList> lists;
    for (const auto& list : samples.lists) lists.push_back({list});
    JsonWriter beside = begin_file("samples");
    beside.list("lists", lists, [](auto& inner, auto& list) { inner.field("step_ns", list.step); });
    write_file(samples_file(file), to_text(beside.take()));
  }
  write_file(file, text);
}

Samples samples_beside(const std::string& file) {
  return {std::filesystem::path(samples_file(file)).filename().string(), {}};
}

}  // namespace

double repeats_apart(const Run& run, double exponent) {
  std::vector<double> steps;
  for (const RunRepeat& repeat : run.repeats) {
    const double around = (repeat.speed_index.before + repeat.speed_index.after).seconds();
    const double slowdown = around > 0 ? std::pow(around, exponent) : 1;
    steps.push_back(repeat.step.p50.seconds() / slowdown);
  }
  if (steps.size() < 2 || std::ranges::max(steps) <= 0) return 0;
  const auto [least, most] = std::ranges::minmax(steps);
  return (most - least) / ((most + least) / 2);
}

bool is_stable(const Run& run, double exponent) {
  constexpr double kSteady = 0.25;  // a change that comes late or early leaves half of it: 12 %
  std::size_t unsteady = 0;
  for (const RunRepeat& repeat : run.repeats) {
    if (!repeat.speed_change) return run.stable;
    unsteady += std::pow(1 + *repeat.speed_change, exponent) - 1 > kSteady ? 1 : 0;
  }
  // The median over repeats stands for the run: it is as stable as most of them.
  return 2 * unsteady <= run.repeats.size() && repeats_apart(run, exponent) <= kRepeatsApart;
}

double mean_staleness(const std::vector<StalenessCount>& counts) {
  double sum = 0, updates = 0;
  for (const StalenessCount& count : counts) {
    sum += static_cast<double>(count.staleness) * static_cast<double>(count.updates);
    updates += static_cast<double>(count.updates);
  }
  return updates > 0 ? sum / updates : 0;
}

std::string samples_file(const std::string& file) {
  std::filesystem::path path(file);
  if (path.extension() == ".json") path.replace_extension();
  return path.string() + ".samples.json";
}

Run read_run(const std::string& file) {
  std::vector<Run> runs = read_runs(file);
  if (runs.size() != 1) {
    throw InputError({file, 0, 0, ""}, "", fmt::format("it holds {} runs", runs.size()),
                     "give a file with one run");
  }
  return std::move(runs.front());
}

std::vector<Run> read_runs(const std::string& file) {
  const nlohmann::json document = read_json(file);
  const JsonPath at(file);
  JsonReader in(document, at);
  const bool several = document.contains("kind") && document["kind"] == "runs";
  check_header(in, several ? "runs" : "run");
  Samples samples = read_samples(file);
  std::vector<Run> runs(1);
  if (several) {
    in.list("runs", runs, [&](auto& inner, auto& run) { describe_run(inner, run, samples); });
  } else {
    describe_run(in, runs.front(), samples);
  }
  in.finish();
  return runs;
}

void write_run(const Run& run, const std::string& file) {
  JsonWriter out = begin_file("run");
  Samples samples = samples_beside(file);
  describe_run(out, run, samples);
  write_both(out, samples, file);
}

void write_runs(const std::vector<Run>& runs, const std::string& file) {
  JsonWriter out = begin_file("runs");
  Samples samples = samples_beside(file);
  out.list("runs", runs, [&](auto& inner, auto& run) { describe_run(inner, run, samples); });
  write_both(out, samples, file);
}

}  // namespace lockstep
