#include "calibration/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "sim/scenario/scenario.h"
#include "sim/simulate.h"
#include "tests/catch.h"
#include "tests/synthetic.h"

namespace lockstep {
namespace {

const std::string kHead =
    "case: made-up\n"
    "source: nobody\n";
const std::string kCommon =
    "  calibration: synthetic.json\n"
    "  model: two_layers\n"
    "  total_batch: 32\n"
    "  strategy: {kind: ddp}\n"
    "  platform: {network: {bandwidth: 1Gbit/s, latency: 50us}}\n";

CalibrationSource synthetic() {
  return [](const std::string&) -> const Calibration& {
    static const Calibration kCalibration = cpu_calibration();
    return kCalibration;
  };
}

PublishedReport predict(const std::string& text) {
  return predict_published({parse_published(text, "case.yaml")}, synthetic());
}

const PublishedRow& row(const PublishedReport& report, const std::string& experiment, int workers) {
  const auto found = std::ranges::find_if(report.rows, [&](const PublishedRow& each) {
    return each.experiment == experiment && each.workers == workers;
  });
  REQUIRE(found != report.rows.end());
  return *found;
}

/// The step that the simulator has with one worker at 2 ms, in whole picoseconds.
std::string step(const std::string& kind, int workers, const std::string& more = "") {
  const Scenario scenario = parse_scenario(
      "name: x\ncalibration: x\nmodel: two_layers\ntotal_batch: 32\nnoise: false\nworkers: [" +
          std::to_string(workers) + "]\nstrategy: {kind: " + kind +
          "}\nstep_time: {batch: 32, time: 2ms}\n" +
          "platform: {network: {bandwidth: 37MB/s, latency: 123us}}\n" + more,
      "x.yaml");
  const Time time = simulate(scenario, cpu_calibration()).points.front().step.mean;
  return std::to_string(time.ps()) + "ps";
}

TEST_CASE("constants that made the figures are found again", "[published]") {
  const PublishedReport report =
      predict(kHead + "scenario:\n" + kCommon +
              "constants:\n"
              "  - {name: link, set: 'platform.network.bandwidth={}', from: 1MB/s, to: 10GB/s}\n"
              "  - {name: latency, set: 'platform.network.latency={}', from: 1us, to: 20ms}\n"
              "experiments:\n"
              "  - name: single\n"
              "    set: {strategy: {kind: single}}\n"
              "    points: [{workers: 1, time: 2ms, role: base}]\n"
              "  - name: gather_scatter\n"
              "    set: {strategy: {kind: gather_scatter}}\n"
              "    points: [{workers: 4, time: " +
              step("gather_scatter", 4) +
              ", role: fitted}]\n"
              "  - name: all_reduce\n"
              "    set: {strategy: {kind: all_reduce}}\n"
              "    points: [{workers: 4, time: " +
              step("all_reduce", 4) +
              ", role: fitted}]\n"
              "  - name: ddp\n"
              "    points: [{workers: 2, time: " +
              step("ddp", 2) + "}, {workers: 4, time: " + step("ddp", 4) + "}]\n");
  REQUIRE(report.constants.size() == 2);
  CHECK(report.constants[0].value == "37.0 MB/s");
  CHECK(report.constants[1].value == "123 us");
  CHECK_FALSE(report.constants[0].at_end_of_range);
  for (const PublishedRow& each : report.rows) {
    INFO(each.experiment);
    CHECK(std::abs(each.error()) < 1e-6);
  }
  CHECK(row(report, "single", 1).role == PublishedRole::fitted);
  CHECK(row(report, "gather_scatter", 4).role == PublishedRole::fitted);
  CHECK(row(report, "ddp", 4).role == PublishedRole::predicted);
  CHECK(median_error(report).value() < 1e-6);
}

/// Without a network: tables of one host, which take 20 us + 100 ps a byte.
std::string two_workers(const std::string& points) {
  return kHead +
         "samples: 3200\n"
         "scenario: {calibration: x, model: two_layers, batch_per_worker: 32, strategy: {kind: "
         "ddp}}\n"
         "experiments:\n"
         "  - name: ddp\n"
         "    points:\n"
         "      - {workers: 1, images_per_s: 3200, role: base}\n" +
         points;
}

TEST_CASE("every kind of figure is of the same step", "[published]") {
  const PublishedReport report =
      predict(two_workers("      - {workers: 2, time: 10ms}\n"
                          "      - {workers: 2, epoch: 500ms}\n"
                          "      - {workers: 2, images_per_s: 6400}\n"
                          "      - {workers: 2, speedup: 2}\n"
                          "      - {workers: 2, efficiency: 1}\n"));
  REQUIRE(report.rows.size() == 6);
  CHECK(report.rows[0].predicted.value() == Approx(3200).epsilon(1e-6));
  const double seconds = report.rows[1].predicted.value();
  CHECK(seconds > 0.01);  // one worker's 10 ms and some communication
  CHECK(report.rows[2].predicted.value() == Approx(seconds * 50));  // steps of 64 out of 3200
  CHECK(report.rows[3].predicted.value() == Approx(64 / seconds));
  CHECK(report.rows[4].predicted.value() == Approx(64 / seconds / 3200));
  CHECK(report.rows[5].predicted.value() == Approx(32 / seconds / 3200));
  for (std::size_t i = 1; i < 6; ++i) CHECK(report.rows[i].role == PublishedRole::predicted);
}

TEST_CASE("figures that cannot all be right are suspect", "[published]") {
  const auto why = [](const std::string& points, std::size_t at) {
    const PublishedReport report = predict(two_workers(points));
    const PublishedRow& each = report.rows.at(at);
    CHECK((each.role == PublishedRole::suspect) == !each.why.empty());
    return each.why;
  };
  CHECK(why("      - {workers: 2, images_per_s: 6700}\n", 1).empty());  // 104.7 %
  CHECK_THAT(why("      - {workers: 2, images_per_s: 6800}\n", 1), Contains("106 %"));
  CHECK_THAT(why("      - {workers: 4, speedup: 4.4}\n", 1), Contains("super-linear"));
  CHECK_THAT(why("      - {workers: 4, efficiency: 1.1}\n", 1), Contains("super-linear"));
  // 6000 / 3200 = 1.875; 1.9 is 1.3 % away from it, 1.95 is 4 %.
  CHECK(why("      - {workers: 2, images_per_s: 6000}\n      - {workers: 2, speedup: 1.9}\n", 2)
            .empty());
  CHECK_THAT(
      why("      - {workers: 2, images_per_s: 6000}\n      - {workers: 2, speedup: 1.95}\n", 2),
      Contains("1.88 follows"));
  // 70 % on two and 80 % on four.
  const std::string disagree =
      "      - {workers: 2, images_per_s: 4480}\n      - {workers: 4, images_per_s: 10240}\n";
  CHECK_THAT(why(disagree, 1), Contains("neighbours disagree"));
  CHECK_THAT(why(disagree, 2), Contains("neighbours disagree"));
  CHECK(why("      - {workers: 2, time: 11ms, role: suspect, why: a misprint}\n", 1) ==
        "a misprint");
}

TEST_CASE("suspect and unpredicted points do not count", "[published]") {
  const PublishedReport report = predict(
      two_workers("      - {workers: 2, images_per_s: 9000}\n"
                  "      - {workers: 2, images_per_s: 5, role: unpredicted, why: no profile}\n"
                  "      - {workers: 2, images_per_s: 5000}\n"));
  REQUIRE(report.rows.size() == 4);
  CHECK_FALSE(report.rows[2].predicted);
  CHECK(median_error(report).value() == std::abs(report.rows[3].error()));
  CHECK_FALSE(median_error(predict(two_workers(""))));
  const std::string table = to_table(report);
  CHECK_THAT(table, Contains("1 suspect, not counted"));
  CHECK_THAT(table, Contains("no profile"));
}

TEST_CASE("shapes are looked at in what is predicted", "[published]") {
  const auto holds = [](const std::string& shape) {
    return predict(two_workers("") + "shape:\n  - {says: it, " + shape + "}\n").shapes.at(0).holds;
  };
  // Weak scaling: steps grow with the number of workers.
  CHECK(holds("check: slower, experiment: ddp, workers: [1, 2, 4]"));
  CHECK_FALSE(holds("check: slower, experiment: ddp, workers: [4, 2, 1]"));
  CHECK(holds("check: falls, experiment: ddp, workers: [4, 2, 1]") !=
        holds("check: falls, experiment: ddp, workers: [1, 2, 4]"));
  CHECK(holds("check: no_gain, within: 0, experiment: ddp, workers: [1, 2]"));
  CHECK_FALSE(holds("check: no_gain, within: 0, experiment: ddp, workers: [2, 1]"));
}

TEST_CASE("the mean of maxima, by hand", "[published]") {
  // Maxima 2.5, 2.3, 1.8: 2.2 on average; both workers' means are 1.9.
  const PublishedReport report = predict(
      kHead +
      "shape:\n  - {says: it, check: mean_of_maxima, steps: [[1.9s, 2.5s], [2.3s, 1.4s], "
      "[1.5s, 1.8s]]}\n  - {says: it, check: mean_of_maxima, steps: [[1s, 2s], [1s, 2s]]}\n");
  CHECK(report.shapes.at(0).holds);
  CHECK_THAT(report.shapes.at(0).seen, Contains("2.20 s") && Contains("1.90 s"));
  CHECK_FALSE(report.shapes.at(1).holds);  // the same worker is always the slowest
}

TEST_CASE("a case file that is not right is refused in one line", "[published]") {
  const std::string link =
      "constants: [{name: l, set: 'platform.network.bandwidth={}', from: 1MB/s, to: 1GB/s}]\n";
  const std::map<std::string, std::string> wrong{
      {"source: x\n", "case.yaml:1:1: case: missing"},
      {kHead + "cases: 1\n", "case.yaml:3:1: cases: unknown key"},
      {kHead + "constants: [{name: l, set: a, from: 1MB/s, to: 1GB/s}]\n", "exactly one {}"},
      {kHead + "constants: [{name: l, set: 'a={}', from: 1GB/s, to: 1MB/s}]\n", "must be above"},
      {two_workers("      - {workers: 2}\n"), "case.yaml:9:9: points: 0 figures"},
      {two_workers("      - {workers: 2, time: 1s, speedup: 2}\n"), "points: 2 figures"},
      {two_workers("      - {workers: 2, time: 5}\n"), "its unit is missing"},
      {two_workers("      - {workers: 2, time: 1s, role: guessed}\n"), "is not one of fitted"},
      {two_workers("      - {workers: 2, time: 1s, role: base}\n"), "of one worker"},
      {two_workers("      - {workers: 2, time: 1s, role: suspect}\n"), "points.why: missing"},
      {two_workers("      - {workers: 2, time: 1s, why: x}\n"), "have a reason"},
      {two_workers("      - {workers: 1, time: 1s, role: base}\n"), "has a base at batch 32"},
      {two_workers("      - {workers: 2, time: 1s, role: fitted}\n"), "no constant is fitted"},
      {two_workers("      - {workers: 2, images_per_s: 9000, role: fitted}\n"),
       "a suspect figure cannot be fitted"},
      {two_workers("") + link, "1 are fitted to 0 points"},
      {two_workers("") + "shape: [{says: a, check: falls, experiment: dpp, workers: [1, 2]}]\n",
       "no experiment is 'dpp'"},
      {two_workers("") + "shape: [{says: a, check: falls, experiment: ddp, workers: [1]}]\n",
       "at least two"},
      {two_workers("    constants: [l]\n"), "no constant is 'l'"},
      {kHead + "scenario: {name: x}\nexperiments: [{name: a, points: [{workers: 2, time: 1s}]}]\n",
       "does not belong"},
      {kHead + "experiments: [{name: a, points: [{workers: 2, time: 1s}]}]\n",
       "calibration: missing"},
  };
  for (const auto& [text, message] : wrong) {
    INFO(text);
    CHECK_THROWS_WITH(predict(text), Contains(message));
  }
}

TEST_CASE("published cases that ship hold", "[published]") {
  const std::filesystem::path folder =
      std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "scenarios" / "published";
  std::vector<PublishedCase> cases;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") cases.push_back(read_published(entry.path().string()));
  }
  CHECK(cases.size() == 8);
  std::map<std::string, Calibration> known;
  const PublishedReport report =
      predict_published(cases, [&](const std::string& file) -> const Calibration& {
        const auto found = known.find(file);
        return found != known.end() ? found->second
                                    : known.emplace(file, read_calibration(file)).first->second;
      });
  CHECK(median_error(report).value() <= 0.10);
  for (const PublishedShapeRow& shape : report.shapes) {
    INFO(shape.case_name << ": " << shape.says);
    CHECK(shape.holds);
  }
  for (const PublishedRow& each : report.rows) {
    INFO(each.case_name << ": " << each.experiment);
    CHECK((each.role == PublishedRole::unpredicted) == !each.predicted);
  }
}

}  // namespace
}  // namespace lockstep
