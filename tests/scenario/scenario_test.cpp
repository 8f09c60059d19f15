#include "sim/scenario/scenario.h"

#include <fmt/core.h>

#include <string>
#include <vector>

#include "sim/core/error.h"
#include "tests/catch.h"

namespace lockstep {
namespace {

const std::string kGood = R"(name: a scenario
calibration: ../calibration/data/machine.json
model: resnet50
batch_per_worker: 32
workers: [1, 2, 4]
strategy: {kind: ddp, bucket_cap: 25MiB, first_bucket_cap: 1MiB, broadcast_buffers: true}
platform:
  hosts: {devices: 4}
  network: {bandwidth: 25GB/s, latency: 5us}
stragglers: [{worker: 3, slowdown: 1.25}]
iterations: 20
seed: 7
sync: none
graph: off
precision: bf16
noise: off
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string message_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    parse_scenario(text, "dir/s.yaml", overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string message_with(const std::string& from, const std::string& to) {
  return message_of(replaced(kGood, from, to));
}

TEST_CASE("a scenario is read with its units, defaults and relative path", "[scenario]") {
  const Scenario scenario = parse_scenario(kGood, "dir/s.yaml");
  CHECK(scenario.name == "a scenario");
  CHECK(scenario.calibration == "calibration/data/machine.json");
  CHECK(scenario.batch_per_worker == 32);
  CHECK_FALSE(scenario.total_batch);
  CHECK(scenario.workers == std::vector<int>{1, 2, 4});
  CHECK(scenario.strategy.kind == "ddp");
  CHECK(scenario.strategy.bucket_cap == Bytes{25 << 20});
  CHECK(scenario.strategy.first_bucket_cap == Bytes{1 << 20});
  REQUIRE(scenario.platform.network);
  CHECK(scenario.platform.network->bandwidth == Bandwidth{25'000'000'000});
  CHECK(scenario.platform.network->latency == Time::microseconds(5));
  CHECK(scenario.platform.devices_per_host == 4);
  REQUIRE(scenario.stragglers.size() == 1);
  CHECK(scenario.stragglers[0].slowdown == Factor::of(1.25));
  CHECK(scenario.iterations == 20);
  CHECK(scenario.seed == 7);
  CHECK(scenario.sync == Sync::none);
  CHECK_FALSE(scenario.graph);
  CHECK(scenario.precision == "bf16");
  CHECK_FALSE(scenario.noise);
}

TEST_CASE("a bucket cap given alone replaces the first cap too", "[scenario]") {
  const std::string text =
      replaced(kGood, "bucket_cap: 25MiB, first_bucket_cap: 1MiB", "bucket_cap: 4MiB");
  const Scenario scenario = parse_scenario(text, "s.yaml");
  CHECK(scenario.strategy.bucket_cap == Bytes{4 << 20});
  CHECK(scenario.strategy.first_bucket_cap == Bytes{4 << 20});
}

TEST_CASE("shares of an uneven batch differ by at most one sample", "[scenario]") {
  Scenario scenario;
  scenario.total_batch = 11;
  CHECK(batch_of(scenario, 4, 0) == 3);
  CHECK(batch_of(scenario, 4, 2) == 3);
  CHECK(batch_of(scenario, 4, 3) == 2);
  CHECK(batch_of(scenario, 11, 10) == 1);
}

TEST_CASE("an override replaces or adds one value", "[scenario]") {
  const std::vector<std::string> overrides{"workers=[8]", "strategy.bucket_cap=2MiB",
                                           "stragglers=[]", "platform.collective=ring",
                                           "calibration=other.json"};
  const Scenario scenario = parse_scenario(kGood, "dir/s.yaml", overrides);
  CHECK(scenario.workers == std::vector<int>{8});
  CHECK(scenario.strategy.bucket_cap == Bytes{2 << 20});
  CHECK(scenario.stragglers.empty());
  REQUIRE(scenario.platform.collective);
  CHECK(scenario.platform.collective->all_reduce == Algorithm::ring);
  CHECK(scenario.calibration == "other.json");
}

TEST_CASE("wrong overrides are named", "[scenario]") {
  CHECK_THAT(message_of(kGood, {"workers"}), StartsWith("--set workers: no value"));
  CHECK_THAT(message_of(kGood, {"=3"}), Contains("no value"));
  for (const char* path : {"workers.", ".workers", "strategy..kind", "."}) {
    CHECK_THAT(message_of(kGood, {std::string(path) + "=[1]"}), Contains("a key is empty"));
  }
  CHECK(message_of(kGood, {"name=" + std::string(200, '[')}).size() < 200);
  CHECK_THAT(message_of(kGood, {"seed.deep=3"}), Contains("deep: the path leads through"));
  CHECK_THAT(message_of(kGood, {"batch=3"}), Contains("batch: unknown key"));
  CHECK_THAT(message_of(kGood, {"iterations=[[["}), StartsWith("--set iterations=[[["));
}

TEST_CASE("what is wrong is named with file, line, column, key and hint", "[scenario]") {
  CHECK(message_with("model: resnet50", "modle: resnet50") ==
        "dir/s.yaml:1:1: model: missing; such as model: resnet50");
  CHECK(message_with("seed: 7", "sed: 7") ==
        "dir/s.yaml:12:1: sed: unknown key; did you mean 'seed'?");
  CHECK(message_with("seed: 7", "iterations: 7") ==
        "dir/s.yaml:12:1: iterations: given twice; the first is in line 11");
  CHECK_THAT(message_with("devices: 4", "devises: 4"), StartsWith("dir/s.yaml:8:10: "));
  CHECK_THAT(message_with("kind: ddp", "kind: dpp"),
             StartsWith("dir/s.yaml:6:18: strategy.kind: 'dpp' is not one of single, "
                        "gather_scatter, all_reduce, ddp"));
  CHECK_THAT(message_with("25MiB", "25"), StartsWith("dir/s.yaml:6:35: strategy.bucket_cap: "));
  CHECK_THAT(message_with("latency: 5us", "latency: 5MiB"), Contains("platform.network.latency"));
  CHECK_THAT(message_with("latency: 5us", "latency: -5us"), Contains("latency"));
  CHECK_THAT(message_with("latency: 5us", "latency: 2h"),
             StartsWith("dir/s.yaml:9:41: platform.network.latency: must be at most one second"));
  CHECK_THAT(message_with("25GB/s", "9TB/s"), Contains("must be at most 8 TB/s"));
  CHECK_THAT(message_with("25GB/s", "0GB/s"), Contains("it must be above zero"));
  CHECK_THAT(message_with("slowdown: 1.25", "slowdown: .nan"), Contains("'.nan' is not a number"));
  CHECK_THAT(message_with("slowdown: 1.25", "slowdown: nan"), Contains("'nan' is not a number"));
  CHECK_THAT(message_with("slowdown: 1.25", "slowdown: inf"), Contains("'inf' is not a number"));
  CHECK_THAT(message_with("iterations: 20", "iterations: 1"), Contains("from 2 to"));
  CHECK_THAT(message_with("seed: 7", "seed: -7"), Contains("'-7' is not a whole number"));
  CHECK_THAT(message_with("workers: [1, 2, 4]", "workers: 4"),
             Contains("expected a list, found a single value"));
  CHECK_THAT(message_with("workers: [1, 2, 4]", "workers: []"), Contains("an empty list"));
  CHECK_THAT(message_with("workers: [1, 2, 4]", "workers: [1, 4, 4]"),
             Contains("4 is given twice"));
  CHECK_THAT(message_with("noise: off", "noise: 0"), Contains("'0' is not one of false, true"));
  CHECK_THAT(message_with("sync: none", "sync:"), Contains("expected a single value"));
}

TEST_CASE("what the parser of YAML says is said so that people understand", "[scenario]") {
  CHECK(message_of("name: x\nstrategy:\n\tkind: ddp\n") ==
        "dir/s.yaml:3:6: a tab in the indentation; indent with spaces");
  CHECK_THAT(message_of("a: [1, 2"), Contains("a list is not closed"));
  CHECK_THAT(message_of("a: {b: 2"), Contains("a map is not closed"));
  CHECK_THAT(message_of("a: b: c"), Contains("a ':' where no key can be"));
  std::string dashes;
  for (int i = 0; i < 600; ++i) dashes += "- ";
  CHECK_THAT(message_of(dashes + "x"), Contains("nested too deeply"));
  std::string maps;
  for (std::size_t i = 0; i < 40; ++i) maps += std::string(i, ' ') + "a:\n";
  CHECK_THAT(message_of(maps + std::string(40, ' ') + "b: 1\n"),
             Contains("nested too deeply; at most 24 levels"));
  CHECK_THAT(message_of("\x1f\x8bzip"), Contains("is compressed; gunzip it first"));
  CHECK_THAT(message_of(""), Contains("empty; "));
  CHECK_THAT(message_with("seed: 7", "seed:"), StartsWith("dir/s.yaml:12:1: seed: expected"));
  CHECK_THAT(message_with("seed: 7", "seed: !!str 7"), Contains("tags are not used"));
  CHECK_THAT(message_with("seed: 7", "seed: 07"), Contains("'07' is not a whole number"));
  CHECK_THAT(message_with("iterations: 20", "iterations: 020"), Contains("'020' is not"));
  CHECK_THAT(message_with("batch_per_worker: 32", "batch: 32"),
             Contains("such as batch_per_worker: 32"));
  const std::string brackets(40, '[');
  CHECK(message_with("seed: 7", "seed: 7  # " + brackets) == "accepted");
  CHECK(message_with("name: a scenario", "name: '" + brackets + "'") == "accepted");
}

TEST_CASE("known keys are listed once", "[scenario]") {
  const std::string message = message_with("seed: 7", "completely_other_word: 7");
  const std::size_t first = message.find("batch_per_worker");
  CHECK(first != std::string::npos);
  CHECK(message.find("batch_per_worker", first + 1) == std::string::npos);
}

TEST_CASE("the place of a key is known later", "[scenario]") {
  const std::vector<std::string> overrides{"model=vgg11"};
  const Scenario scenario = parse_scenario(kGood, "dir/s.yaml", overrides);
  CHECK(to_string(place_of(scenario, "precision")) == "dir/s.yaml:15:12");
  CHECK(to_string(place_of(scenario, "platform.network.bandwidth")) == "dir/s.yaml:9:24");
  CHECK(to_string(place_of(scenario, "platform.network.other")) == "dir/s.yaml:9:12");
  CHECK(to_string(place_of(scenario, "engine")) == "dir/s.yaml");
  CHECK_THAT(to_string(place_of(scenario, "model")), StartsWith("--set model=vgg11"));
}

TEST_CASE("fields that contradict each other are refused", "[scenario]") {
  CHECK_THAT(message_with("{worker: 3", "{worker: 4"),
             Contains("worker 4 never exists; with 4 workers the last is 3"));
  CHECK_THAT(message_with("seed: 7", "total_batch: 128"),
             Contains("batch_per_worker is given too"));
  CHECK_THAT(message_with("batch_per_worker: 32", "total_batch: 3"),
             Contains("4 workers share a total_batch of 3"));
  CHECK_THAT(message_with("batch_per_worker: 32\n", ""), Contains("batch_per_worker: missing"));
  CHECK_THAT(message_with("  network: {bandwidth: 25GB/s, latency: 5us}", "  collective: ring"),
             Contains("ring runs over a network, none is given"));
  CHECK_THAT(message_with("kind: ddp", "kind: single"), Contains("bucket_cap: unknown key"));
  CHECK_THAT(message_with("[{worker: 3, slowdown: 1.25}]",
                          "[{worker: 3, slowdown: 2}, {worker: 3, slowdown: 3}]"),
             Contains("worker 3 is given twice"));
  CHECK_THAT(message_of(kGood, {"workers=[4096]", "iterations=10000"}), Contains("too many"));
}

TEST_CASE("platform, stragglers, input and data set in full", "[scenario]") {
  const std::string network_text =
      "{bandwidth: 1Gbit/s, mtu: 9000B, slow_links: [{host: 1, bandwidth: 100Mbit/s}]}";
  const std::vector<std::string> overrides{"platform.network=" + network_text,
                                           "platform.hosts={devices: 2, emulated: true}",
                                           "platform.collective=halving_doubling",
                                           "stragglers=[{worker: 1, delay: 5ms, part: backward}]",
                                           "compute=replay",
                                           "input={workers: 2, load: 30ms, copy: 1ms}",
                                           "dataset={samples: 1000, drop_last: false}"};
  const Scenario scenario = parse_scenario(kGood, "s.yaml", overrides);
  const NetworkOptions& network = scenario.platform.network.value();
  CHECK(network.bandwidth == Bandwidth{125'000'000});
  CHECK(network.latency == Time{});
  CHECK(network.mtu == Bytes{9000});
  CHECK(network.slow_links == std::vector<SlowLink>{{1, {12'500'000}}});
  CHECK(scenario.platform.emulated);
  CHECK(scenario.platform.collective->all_reduce == Algorithm::halving_doubling);
  CHECK(scenario.stragglers.at(0).slowdown == Factor{});
  CHECK(scenario.stragglers.at(0).delay == Time::milliseconds(5));
  CHECK(scenario.stragglers.at(0).part == StepPart::backward);
  CHECK(scenario.compute == Compute::replay);
  CHECK(scenario.input.on);
  CHECK(scenario.input.workers == 2);
  CHECK(scenario.input.load == Time::milliseconds(30));
  // 32 samples a worker: 4 workers take 128 a step, 7 whole steps and one with the rest.
  CHECK(steps_per_epoch(scenario, 4) == 8);
  CHECK(steps_per_epoch(
            parse_scenario(kGood, "s.yaml", std::vector<std::string>{"dataset={samples: 1000}"}),
            4) == 7);
  const std::vector<std::string> in_full{"platform.collective={all_reduce: hierarchical}"};
  CHECK(parse_scenario(kGood, "s.yaml", in_full).platform.collective->all_reduce ==
        Algorithm::hierarchical);
  CHECK(parse_scenario(kGood, "s.yaml", std::vector<std::string>{"platform={network: measured}"})
            .platform.network->measured);
  CHECK_FALSE(parse_scenario(kGood, "s.yaml", std::vector<std::string>{"input=off"}).input.on);
}

TEST_CASE("what is wrong in the parts of a scenario is named with its place", "[scenario]") {
  const auto network = [](const std::string& rest) {
    return message_with("network: {bandwidth: 25GB/s, latency: 5us}", "network: " + rest);
  };
  CHECK(network("fast") ==
        "dir/s.yaml:9:12: platform.network: 'fast' is no network; write measured, or {bandwidth: "
        "25GB/s, latency: 5us}");
  CHECK_THAT(network("[]"), Contains("expected a map, found a list"));
  CHECK_THAT(network("{latency: 5us}"), Contains("bandwidth: missing"));
  CHECK_THAT(network("{bandwidth: 9000GB/s}"), Contains("at most 8 TB/s"));
  CHECK_THAT(network("{bandwidth: 1GB/s, mtu: 1500}"), Contains("platform.network.mtu"));
  CHECK_THAT(network("{bandwidth: 1GB/s, mtu: 100B}"), Contains("must be from 576 B"));
  CHECK_THAT(network("{bandwidth: 1GB/s, nics: 2}"), Contains("nics: unknown key"));
  CHECK_THAT(network("{bandwidth: 1GB/s, slow_links: [{host: 1}]}"),
             Contains("slow_links.bandwidth: missing"));
  CHECK_THAT(network("{bandwidth: 1GB/s, slow_links: [{host: 1, bandwidth: 1MB/s}]}"),
             Contains("host 1 never exists; with 1 hosts the last is 0"));
  CHECK_THAT(network("{bandwidth: 1GB/s, slow_links: [{host: 0, bandwidth: 1MB/s}, {host: 0, "
                     "bandwidth: 1MB/s}]}"),
             Contains("host 0 is given twice"));
  CHECK_THAT(message_of(kGood, {"platform.collective=bubble"}), Contains("is not one of table"));
  CHECK_THAT(message_of(kGood, {"platform.collective={reduce: tree}"}),
             Contains("all_reduce: missing"));
  CHECK_THAT(message_of(kGood, {"platform.collective={all_reduce: pairwise}"}),
             Contains("is not one of table"));
  CHECK_THAT(message_of(kGood, {"platform={network: measured, collective: tree}"}),
             Contains("tree runs over a network, none is given"));
  CHECK_THAT(message_of(kGood, {"platform.hosts.emulated=maybe"}), Contains("'maybe' is not one"));
  const auto straggler = [](const std::string& text) {
    return message_with("{worker: 3, slowdown: 1.25}", text);
  };
  CHECK_THAT(straggler("{worker: 3}"), Contains("neither a slowdown nor a delay"));
  CHECK_THAT(straggler("{worker: 3, delay: 0ms}"), Contains("longer than nothing"));
  CHECK_THAT(straggler("{worker: 3, delay: 5}"), Contains("stragglers.delay"));
  CHECK_THAT(straggler("{worker: 3, slowdown: 2, part: forward}"), Contains("none is given"));
  CHECK_THAT(straggler("{worker: 3, delay: 1ms, part: night}"), Contains("is not one of step"));
  CHECK_THAT(message_of(kGood, {"compute=later"}), Contains("is not one of real, replay"));
  CHECK_THAT(message_of(kGood, {"input=maybe"}), Contains("input: 'maybe' is not one of"));
  CHECK_THAT(message_of(kGood, {"input={loaders: 2}"}), Contains("loaders: unknown key"));
  CHECK_THAT(message_of(kGood, {"input={workers: -1}"}), Contains("input.workers"));
  CHECK_THAT(message_of(kGood, {"input={load: 30}"}), Contains("input.load"));
  CHECK_THAT(message_of(kGood, {"dataset={}"}), Contains("samples: missing"));
  CHECK_THAT(message_of(kGood, {"dataset={samples: 127}"}),
             Contains("127 samples are less than one step of 128"));
  CHECK_THAT(message_of(kGood, {"dataset={samples: 1.5}"}), Contains("dataset.samples"));
}

TEST_CASE("data_parallel takes a lock and no buckets, and cuts a batch as torch.chunk does",
          "[scenario]") {
  const std::string text = replaced(
      kGood, "{kind: ddp, bucket_cap: 25MiB, first_bucket_cap: 1MiB, broadcast_buffers: true}",
      "{kind: data_parallel, gil: true}");
  CHECK(parse_scenario(text, "s.yaml").strategy.gil);
  CHECK_FALSE(
      parse_scenario(text, "s.yaml", std::vector<std::string>{"strategy.gil=false"}).strategy.gil);
  CHECK_THAT(message_of(text, {"strategy.bucket_cap=4MiB"}), Contains("bucket_cap: unknown key"));
  CHECK_THAT(message_of(text, {"strategy.gil=1"}), Contains("strategy.gil: '1' is not one of"));
  CHECK_THAT(message_of(kGood, {"strategy.gil=true"}), Contains("strategy.gil: unknown key"));

  Scenario scenario = parse_scenario(text, "s.yaml");
  scenario.batch_per_worker.reset();
  scenario.total_batch = 10;
  const auto shares = [&scenario](int workers) {
    std::vector<int> batches;
    for (int rank = 0; rank < workers; ++rank) {
      batches.push_back(batch_of(scenario, workers, rank));
    }
    return batches;
  };
  CHECK(shares(4) == std::vector<int>{3, 3, 3, 1});
  CHECK(shares(6) == std::vector<int>{2, 2, 2, 2, 2, 0});
  scenario.strategy.kind = "ddp";
  CHECK(shares(4) == std::vector<int>{3, 3, 2, 2});
}

TEST_CASE("horovod takes a preset, and what is given beside it replaces that", "[scenario]") {
  const std::string ddp =
      "{kind: ddp, bucket_cap: 25MiB, first_bucket_cap: 1MiB, broadcast_buffers: true}";
  const auto strategy = [&](const std::string& text) {
    return parse_scenario(replaced(kGood, ddp, text), "s.yaml").strategy;
  };
  const auto message = [&](const std::string& text) { return message_with(ddp, text); };
  CHECK(strategy("{kind: horovod}").cycle_time == Time::milliseconds(1));
  CHECK(strategy("{kind: horovod}").fusion_threshold == Bytes{128 << 20});
  const StrategyOptions old = strategy("{kind: horovod, fusion_threshold: 1MiB, preset: v0.20}");
  CHECK(old.cycle_time == Time::milliseconds(5));
  CHECK(old.fusion_threshold == Bytes{1 << 20});
  CHECK(strategy("{kind: horovod, fusion_threshold: 0B}").fusion_threshold == Bytes{});
  CHECK(strategy("{kind: horovod, hierarchical: true}").hierarchical);
  CHECK_THAT(message("{kind: horovod, cycle_time: 0ms}"),
             StartsWith("dir/s.yaml:6:") && EndsWith(": strategy.cycle_time: must be 1us to 10s; "
                                                     "1ms, or 5ms before November 2020"));
  CHECK_THAT(message("{kind: horovod, cycle_time: 5}"), Contains("strategy.cycle_time: "));
  CHECK_THAT(message("{kind: horovod, preset: v0.19}"),
             Contains("strategy.preset: 'v0.19' is not one of v0.21, v0.20"));
  CHECK_THAT(message("{kind: horovod, bucket_cap: 1MiB}"), Contains("unknown key"));
  CHECK_THAT(message("{kind: ddp, cycle_time: 5ms}"), Contains("unknown key"));
}

TEST_CASE("ddp takes the options of its passes", "[scenario]") {
  const std::string ddp = "broadcast_buffers: true";
  const StrategyOptions options =
      parse_scenario(replaced(kGood, ddp,
                              "accumulate: 4, no_sync: true, find_unused_parameters: true, "
                              "compression: bf16"),
                     "s.yaml")
          .strategy;
  CHECK(options.accumulate == 4);
  CHECK(options.no_sync);
  CHECK(options.find_unused_parameters);
  CHECK(options.compression == Compression::bf16);
  CHECK_THAT(message_with(ddp, "accumulate: 0"), Contains("strategy.accumulate"));
  CHECK_THAT(message_with(ddp, "no_sync: true"),
             Contains("strategy.no_sync: there is no pass that could do without"));
  CHECK_THAT(message_with(ddp, "compression: fp16"), Contains("'fp16' is not one of none, bf16"));
}

TEST_CASE("files that are no scenario end in one line", "[scenario]") {
  CHECK_THAT(message_of(""), Contains("empty"));
  CHECK_THAT(message_of("\n# nothing\n"), Contains("empty"));
  CHECK_THAT(message_of("just a word"), Contains("expected a map"));
  CHECK_THAT(message_of("[1, 2]"), Contains("expected a map"));
  CHECK_THAT(message_of("name: [1, 2"), StartsWith("dir/s.yaml:"));
  CHECK_THAT(message_of("name: \"unfinished"), StartsWith("dir/s.yaml:"));
  CHECK_THAT(message_of("a: 1\n---\nb: 2\n"), Contains("more than one document"));
  CHECK_THAT(message_of(std::string("na\0me: x", 8)), Contains("not a text file"));
  CHECK_THAT(message_of(std::string(70'000, 'a')), Contains("too large"));
  CHECK_THAT(message_of(std::string(5'000, '[')), Contains("nested too deeply"));
  CHECK_THAT(message_of("name: *nobody"), StartsWith("dir/s.yaml:"));
  CHECK_THAT(message_of("name: &a [*a]"), StartsWith("dir/s.yaml:"));
  CHECK_THAT(message_of("a: &a {b: *a}"), StartsWith("dir/s.yaml:"));
  CHECK_THAT(message_of("{[a]: 1}"), Contains("a key must be a plain word"));
  std::string doubling = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 20; ++i) doubling += fmt::format("a{0}: &a{0} [*a{1}, *a{1}]\n", i, i - 1);
  CHECK_THAT(message_of(doubling), Contains("too many values"));
  CHECK_THROWS_AS(read_scenario("/nowhere/at all.yaml"), InputError);
  CHECK_THROWS_AS(read_scenario("/"), InputError);
}

TEST_CASE("published steps and device links are read", "[scenario]") {
  const Scenario scenario =
      parse_scenario(replaced(kGood, "  hosts: {devices: 4}\n",
                              "  hosts: {devices: 4, link: {bandwidth: 12GB/s, latency: 8us}}\n") +
                         "step_time: [{batch: 128, time: 71ms}, {batch: 32, time: 20ms}]\n",
                     "s.yaml");
  REQUIRE(scenario.step_times.size() == 2);
  CHECK(scenario.step_times[0].batch == 32);  // by rising batch
  CHECK(scenario.step_times[1].time == Time::milliseconds(71));
  REQUIRE(scenario.platform.device_link);
  CHECK(scenario.platform.device_link->bandwidth == Bandwidth{12'000'000'000});
  CHECK(scenario.platform.device_link->latency == Time::microseconds(8));
  CHECK(parse_scenario(kGood + "step_time: {batch: 1, time: 1s}\n", "s.yaml").step_times.size() ==
        1);

  const auto step_time = [](const std::string& value) {
    return message_of(kGood + "step_time: " + value + "\n");
  };
  CHECK_THAT(step_time("{batch: 32}"), Contains("step_time.time: missing"));
  CHECK_THAT(step_time("{batch: 32, time: 20}"), Contains("its unit is missing"));
  CHECK_THAT(step_time("{batch: 32, time: 0s}"), Contains("longer than nothing"));
  CHECK_THAT(step_time("{batch: 32, time: 2h}"), Contains("longer than an hour"));
  CHECK_THAT(step_time("{batch: 0, time: 2s}"), Contains("a whole number from 1"));
  CHECK_THAT(step_time("{batch: 32, tme: 2s}"), Contains("missing"));
  CHECK_THAT(step_time("[]"), Contains("an empty list"));
  CHECK_THAT(step_time("[{batch: 8, time: 2s}, {batch: 8, time: 3s}]"), Contains("given twice"));
  const auto link = [](const std::string& value) {
    return message_with("  hosts: {devices: 4}\n", "  hosts: {devices: 4, link: " + value + "}\n");
  };
  CHECK_THAT(link("{latency: 5us}"), Contains("platform.hosts.link.bandwidth: missing"));
  CHECK_THAT(link("{bandwidth: 1kB/s}"), Contains("at least 1 MB/s"));
  CHECK_THAT(link("{bandwidth: 1GB/s, latency: 2s}"), Contains("at most one second"));
  CHECK_THAT(link("fast"), Contains("expected a map"));
}

}  // namespace
}  // namespace lockstep
