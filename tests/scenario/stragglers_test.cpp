#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/variability.h"
#include "tests/catch.h"
#include "tests/records/temporary_folder.h"

namespace lockstep {
namespace {

using testing::spill;
using testing::TemporaryFolder;
using Kind = Variability::Kind;

std::string text_with(const std::string& straggler, const std::string& strategy = "{kind: ddp}") {
  return "name: s\ncalibration: c.json\nmodel: m\nbatch_per_worker: 32\nworkers: [1, "
         "4]\nstrategy: " +
         strategy + "\nstragglers: [" + straggler + "]\n";
}

Straggler read(const std::string& straggler, const std::string& file = "s.yaml") {
  return parse_scenario(text_with(straggler), file).stragglers.at(0);
}

std::string message_of(const std::string& straggler, const std::string& file = "s.yaml") {
  try {
    read(straggler, file);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("a straggler's slow-down is a number or a distribution", "[scenario]") {
  const Straggler constant = read("{worker: 3, slowdown: 1.25}");
  CHECK(constant.slowdown == Factor::of(1.25));
  CHECK_FALSE(varies(constant));

  const Straggler normal =
      read("{worker: all, slowdown: {kind: log_normal, sigma: 0.2, median: 1.5, least: 1}}");
  CHECK(normal.worker == kEveryWorker);
  CHECK(applies_to(normal, 3));
  CHECK(normal.slowdown == Factor::of(1.5));
  CHECK(normal.slowdown_varies.sigma == 0.2);
  CHECK(normal.slowdown_varies.least == Approx(1 / 1.5));

  const Straggler heavy = read("{worker: 1, slowdown: {kind: pareto, shape: 2.5}}");
  CHECK_FALSE(applies_to(heavy, 0));
  CHECK(heavy.slowdown_varies == Variability{.kind = Kind::pareto, .shape = 2.5});
  CHECK(heavy.slowdown == Factor{});

  const Straggler often =
      read("{worker: 1, slowdown: {kind: periodic, factor: 3, every: 10, aligned: false}}");
  CHECK(often.slowdown_varies ==
        Variability{.kind = Kind::periodic, .every = 10, .high = 3, .low = 1, .aligned = false});
}

TEST_CASE("a straggler's delay is a time or a distribution, in one part of the step",
          "[scenario]") {
  const Straggler normal =
      read("{worker: 2, delay: {kind: log_normal, sigma: 0.5, median: 5ms}, part: backward}");
  CHECK(normal.delay == Time::milliseconds(5));
  CHECK(normal.part == StepPart::backward);
  CHECK(normal.delay_varies.sigma == 0.5);

  const Straggler clock = read("{worker: 2, delay: {kind: periodic, duration: 50ms, period: 2s}}");
  CHECK(by_clock(clock.delay_varies));
  CHECK(clock.delay_varies.period == Time::milliseconds(2000));
  CHECK(clock.delay == Time::milliseconds(50));
  const Straggler steps = read("{worker: 2, delay: {kind: periodic, duration: 50ms, every: 4}}");
  CHECK(draw(steps.delay_varies, {1, 2, 3, 9}).value() == 1);
  CHECK(draw(steps.delay_varies, {1, 2, 4, 9}).value() == 0);
}

TEST_CASE("samples come from a file beside the scenario", "[scenario]") {
  const TemporaryFolder folder;
  spill(folder.file("factors.txt"), "# of a shared node\n1\n\n  1.25  \r\n3e0\n");
  spill(folder.file("delays.txt"), "0ms\n5ms\n1.5s");
  const std::string scenario = folder.file("s.yaml");
  const Straggler factors =
      read("{worker: 0, slowdown: {kind: samples, file: factors.txt}}", scenario);
  CHECK(factors.slowdown_varies.values == std::vector<double>{1, 1.25, 3});
  CHECK_FALSE(factors.slowdown_varies.listed);
  const Straggler delays =
      read("{worker: 0, delay: {kind: samples, file: delays.txt, order: listed}}", scenario);
  CHECK(delays.delay_varies.listed);
  CHECK(delays.delay_varies.values == std::vector<double>{0, 0.5, 150});
  CHECK(scale(delays.delay, draw(delays.delay_varies, {1, 0, 2, 9})) == Time::milliseconds(1500));

  const auto refused = [&](const std::string& text) {
    spill(folder.file("bad.txt"), text);
    return message_of("{worker: 0, slowdown: {kind: samples, file: bad.txt}}", scenario);
  };
  CHECK_THAT(refused("1\nfast\n"),
             Contains("bad.txt:2:1: 'fast' is not a factor from 0.001 to 1000"));
  CHECK_THAT(refused("1\n\n-2\n"), Contains("bad.txt:3:1: '-2' is not a factor"));
  CHECK_THAT(refused("nan"), Contains("bad.txt:1:1: 'nan'"));
  CHECK_THAT(refused("1 2"), Contains("'1 2' is not a factor"));
  CHECK_THAT(refused("# nothing\n\n"), Contains("bad.txt: holds no samples"));
  CHECK_THAT(refused(""), Contains("holds no samples"));
  CHECK_THAT(message_of("{worker: 0, slowdown: {kind: samples, file: none.txt}}", scenario),
             Contains("none.txt"));
  spill(folder.file("bad.txt"), "5ms\n7\n");
  CHECK_THAT(message_of("{worker: 0, delay: {kind: samples, file: bad.txt}}", scenario),
             Contains("bad.txt:2:1: "));
}

TEST_CASE("what no distribution can be is one line with its place", "[scenario]") {
  CHECK(message_of("{worker: 0, slowdown: {kind: log_normal, sigma: -0.1}}") ==
        "s.yaml:7:62: stragglers.slowdown.sigma: '-0.1' is not a number from 0 to 5");
  CHECK_THAT(message_of("{worker: 0, slowdown: {kind: log_normal}}"), Contains("sigma: missing"));
  CHECK_THAT(message_of("{worker: 0, slowdown: {sigma: 0.1}}"), Contains("kind: missing"));
  CHECK_THAT(message_of("{worker: 0, slowdown: {kind: normal, sigma: 0.1}}"),
             Contains("'normal' is not one of log_normal, pareto, periodic, samples"));
  CHECK_THAT(message_of("{worker: 0, slowdown: {kind: pareto, shape: 1}}"),
             Contains("a Pareto distribution of shape 1 has no mean; above 1"));
  CHECK_THAT(message_of("{worker: 0, delay: {kind: pareto, shape: 0.5, scale: 1ms}}"),
             Contains("shape 0.5 has no mean"));
  CHECK_THAT(message_of("{worker: 0, delay: {kind: pareto, shape: 2}}"),
             Contains("scale: missing"));
  CHECK_THAT(message_of("{worker: 0, delay: {kind: periodic, duration: 1ms, every: 0}}"),
             Contains("every: '0' is not a whole number from 1"));
  CHECK_THAT(message_of("{worker: 0, delay: {kind: periodic, duration: 1ms, period: 0s}}"),
             Contains("period: must be longer than nothing"));
  CHECK_THAT(message_of("{worker: 0, delay: {kind: periodic, duration: 1ms}}"),
             Contains("every: missing"));
  CHECK_THAT(
      message_of("{worker: 0, delay: {kind: periodic, duration: 1ms, every: 2, period: 1s}}"),
      Contains("a period is given too"));
  CHECK_THAT(message_of("{worker: 0, delay: {kind: periodic, duration: 2s, period: 1s}}"),
             Contains("leave no time to work"));
  CHECK_THAT(message_of("{worker: 0, slowdown: {kind: periodic, factor: 3, period: 1s}}"),
             Contains("period: by the clock there are pauses only"));
  CHECK_THAT(message_of("{worker: 0, slowdown: {kind: pareto, shape: 2, sigma: 1}}"),
             Contains("sigma: unknown key"));
  CHECK_THAT(message_of("{worker: any, slowdown: 2}"), Contains("stragglers.worker"));
  CHECK_THAT(message_of("{worker: all, slowdown: 2}, {worker: all, delay: 1ms}"),
             Contains("all workers are given twice"));
  CHECK(message_of("{worker: all, slowdown: 2}, {worker: 1, delay: 1ms}") == "accepted");
  CHECK_THAT(message_of("{worker: 4, slowdown: 2}"), Contains("worker 4 never exists"));
}

TEST_CASE("backup workers leave two at least, where gradients are whole", "[scenario]") {
  const auto message = [](const std::string& strategy) -> std::string {
    try {
      const Scenario scenario = parse_scenario(text_with("", strategy), "s.yaml");
      return "accepted " + std::to_string(scenario.backup_workers);
    } catch (const InputError& error) {
      return error.what();
    }
  };
  CHECK(message("{kind: all_reduce, backup_workers: 2}") == "accepted 2");
  CHECK_THAT(message("{kind: all_reduce, backup_workers: 3}"),
             Contains("strategy.backup_workers: 3 of 4 workers leave 1 to wait for; at least 2"));
  CHECK_THAT(message("{kind: ddp, backup_workers: 1}"), Contains("backup_workers: unknown key"));
}

}  // namespace
}  // namespace lockstep
