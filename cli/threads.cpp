#include <fmt/core.h>

#include <memory>

#include "calibration/thread_search.h"
#include "cli/calibrations.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "sim/records/calibration.h"
#include "sim/records/run.h"
#include "sim/scenario/scenario.h"

namespace lockstep::cli {
namespace {

struct ThreadsOptions {
  std::string scenario, json;
  std::vector<std::string> calibrations, runs;
  std::vector<int> batches;
};

std::vector<Calibration> read_calibrations(const Scenario& scenario,
                                           const ThreadsOptions& options) {
  std::vector<Calibration> calibrations{read_calibration(scenario.calibration)};
  for (const std::string& file : options.calibrations) {
    calibrations.push_back(read_calibration(file));
  }
  return calibrations;
}

std::vector<int> batches_of(const Scenario& scenario, const ThreadsOptions& options) {
  if (!options.batches.empty()) return options.batches;
  if (scenario.total_batch) return {*scenario.total_batch};
  throw InputError(place_of(scenario, "batch_per_worker"), "batch_per_worker",
                   "processes share one batch here", "give total_batch, or --batches 32,64");
}

ExitCode find_threads(const ThreadsOptions& options) {
  std::vector<std::string> inputs = options.calibrations;
  inputs.push_back(options.scenario);
  inputs.insert(inputs.end(), options.runs.begin(), options.runs.end());
  check_files(inputs, {{options.json}});
  const Scenario scenario = read_scenario(options.scenario);
  check_files(calibrations_of(scenario), {{options.json}});
  const std::vector<Calibration> calibrations = read_calibrations(scenario, options);
  std::vector<ThreadPoint> points =
      search_threads(scenario, calibrations, batches_of(scenario, options));
  for (const std::string& file : options.runs) {
    add_measured(points, scenario, calibrations, read_runs(file));
  }
  print(fmt::format("{}, {}: processes x threads on {}\n\n", scenario.model, scenario.strategy.kind,
                    calibrations.front().origin.machine.host));
  print(to_table(points));
  if (!options.json.empty()) write_thread_search(points, scenario, options.json);
  return ExitCode::done;
}

}  // namespace

void add_threads(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("threads", "Find the best processes x threads on cores");
  const auto options = std::make_shared<ThreadsOptions>();
  command->add_option("SCENARIO", options->scenario, "Scenario file (YAML) with a total_batch")
      ->required();
  command->add_option("CALIBRATIONS", options->calibrations,
                      "Of the same machine with other numbers of threads a worker");
  command->add_option("--runs", options->runs, "Runs of the calibrations' visits, to be compared")
      ->type_name("FILE")
      ->delimiter(',');
  command->add_option("--batches", options->batches, "Total batches; by default the scenario's")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N,...")
      ->delimiter(',');
  command->add_option("--json", options->json, "Write the search as JSON")->type_name("FILE");
  command->footer(
      "Example:\n  calibration/threads.sh build/release build/threads vgg11 16\n"
      "measures with each number of threads and ends with this search.");
  command->callback([&action, options] { action = [options] { return find_threads(*options); }; });
}

}  // namespace lockstep::cli
