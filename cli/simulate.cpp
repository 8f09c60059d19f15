#include "sim/simulate.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "cli/calibrations.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "sim/core/files.h"
#include "sim/records/calibration.h"
#include "sim/records/result.h"
#include "sim/report/table.h"
#include "sim/report/trace.h"
#include "sim/scenario/scenario.h"

namespace lockstep::cli {
namespace {

struct SimulateOptions {
  std::string scenario;
  std::vector<std::string> overrides;
  std::string json, csv, trace;
  unsigned threads = 0;
};

std::string next_steps(const SimulateOptions& options) {
  if (options.json.empty()) {
    return fmt::format("\nNext: lockstep simulate {} --json result.json, then lockstep plot\n",
                       options.scenario);
  }
  std::string text = fmt::format("\nNext: lockstep plot {} -o plots\n", options.json);
  if (!options.trace.empty()) {
    text += fmt::format("      open {} in https://ui.perfetto.dev\n", options.trace);
  }
  return text;
}

struct Answer {
  Prediction prediction;
  std::string trace;  ///< empty unless asked for
};

/// What is wrong with the question only the calibration's answer shows: the scenario's place is
/// added then.
Answer answer(const Scenario& scenario, const Calibration& calibration,
              const SimulateOptions& options) {
  try {
    Progress progress("simulating", "points", scenario.workers.size() + 1);  // and the baseline
    Answer answer;
    answer.prediction =
        simulate(scenario, calibration, options.threads, [&] { progress.advance(); });
    if (!options.trace.empty()) {
      const int most = *std::ranges::max_element(scenario.workers);
      const NamedTimeline timeline{"simulated", simulate_step(scenario, calibration, most)};
      answer.trace = to_chrome_trace({&timeline, 1});
    }
    return answer;
  } catch (const InputError& error) {
    if (!error.location().file.empty()) throw;
    throw error.within(to_string(place_of(scenario, error.key())));
  }
}

ExitCode simulate_scenario(const SimulateOptions& options) {
  const std::vector<std::string> outputs{options.json, options.csv, options.trace};
  check_files({{options.scenario}}, outputs);
  const Scenario scenario = read_scenario(options.scenario, options.overrides);
  check_files(calibrations_of(scenario), outputs);
  const Calibration calibration = read_calibration(scenario.calibration);
  const auto [prediction, trace] = answer(scenario, calibration, options);
  if (!options.trace.empty()) write_file(options.trace, trace);
  if (!options.csv.empty()) write_file(options.csv, to_csv(prediction));
  if (!options.json.empty()) write_result(prediction, options.json);
  print(to_table(prediction) + next_steps(options));
  return ExitCode::done;
}

}  // namespace

void add_simulate(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("simulate", "Predict steps, throughput and speed-up");
  const auto options = std::make_shared<SimulateOptions>();
  command->add_option("SCENARIO", options->scenario, "Scenario file (YAML)")->required();
  command
      ->add_option("--set", options->overrides,
                   "Change one value, e.g. strategy.bucket_cap=4MiB; may be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->delimiter('\0');
  command->add_option("--json", options->json, "Write the result as JSON")->type_name("FILE");
  command->add_option("--csv", options->csv, "Write the result as CSV")->type_name("FILE");
  command
      ->add_option("--trace", options->trace,
                   "Write one step of the largest point for Perfetto or chrome://tracing")
      ->type_name("FILE");
  command->add_option("--threads", options->threads, "Points simulated at once; 0: one per core")
      ->check(CLI::Range(0U, 1024U))
      ->type_name("N");
  command->footer(
      "Example:\n  lockstep simulate scenarios/demo.yaml --set workers=[1,2,4,8] --json "
      "result.json");
  command->callback(
      [&action, options] { action = [options] { return simulate_scenario(*options); }; });
}

}  // namespace lockstep::cli
