#include "calibration/validate.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "calibration/check.h"
#include "calibration/compare_servers.h"
#include "calibration/validation_table.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/percent.h"
#include "cli/progress.h"
#include "sim/records/kind.h"
#include "sim/records/run.h"
#include "sim/scenario/scenario.h"

namespace lockstep::cli {
namespace {

struct ValidateOptions {
  std::vector<std::string> files;
  std::string mean, worst, unstable;
  std::string platform, json;
  bool timelines = false;
};

/// Calibrations and runs, told apart by what the files say they are.
struct Inputs {
  std::vector<Calibration> calibrations;
  std::vector<std::vector<Run>> runs;  ///< of each calibration
};

Inputs read_inputs(const std::vector<std::string>& files) {
  Inputs inputs;
  std::vector<std::string> run_files;
  for (const std::string& file : files) {
    if (record_kind(file) == "calibration") {
      inputs.calibrations.push_back(read_calibration(file));
      const std::string& id = inputs.calibrations.back().id;
      if (std::ranges::count(inputs.calibrations, id, &Calibration::id) > 1) {
        throw InputError({file, 0, 0, ""}, "", fmt::format("calibration \"{}\" is given twice", id),
                         "each belongs to a visit of its own");
      }
    } else {
      run_files.push_back(file);
    }
  }
  if (inputs.calibrations.empty()) {
    throw InputError({}, "", "no calibration among the files", "name it before the runs");
  }
  if (run_files.empty()) throw InputError({}, "", "no runs given", "name the files of runs, too");
  inputs.runs.resize(inputs.calibrations.size());
  for (const std::string& file : run_files) {
    for (Run& run : read_runs(file)) {
      std::size_t i = 0;
      while (i < inputs.calibrations.size() && inputs.calibrations[i].id != run.calibration) ++i;
      if (i == inputs.calibrations.size()) {
        throw InputError({file, 0, 0, ""}, run.id,
                         fmt::format("belongs to calibration \"{}\"", run.calibration),
                         "a run is compared with the calibration of its own visit");
      }
      if (std::ranges::find(inputs.runs[i], run.id, &Run::id) != inputs.runs[i].end()) {
        throw InputError({file, 0, 0, ""}, run.id, "this run is given twice",
                         "it would count twice: name each file once");
      }
      inputs.runs[i].push_back(std::move(run));
    }
  }
  return inputs;
}

/// Everything that is read: of each record of runs, the samples beside it too.
std::vector<std::string> inputs_of(const ValidateOptions& options) {
  std::vector<std::string> inputs = options.files;
  for (const std::string& file : options.files) inputs.push_back(samples_file(file));
  if (!options.platform.empty()) inputs.push_back(options.platform);
  return inputs;
}

std::vector<Validation> predict(const Inputs& inputs, const PlatformOptions& platform) {
  std::size_t all = 0;
  for (const std::vector<Run>& runs : inputs.runs) all += runs.size();
  Progress progress("predicting", "runs", all);
  std::vector<Validation> validations;
  for (std::size_t i = 0; i < inputs.calibrations.size(); ++i) {
    // Those without runs say what some workers of other visits' runs cost.
    if (inputs.runs[i].empty()) continue;
    validations.push_back(validate(
        inputs.calibrations[i], inputs.runs[i], platform, [&progress] { progress.advance(); },
        inputs.calibrations));
  }
  return validations;
}

std::string timelines(const Inputs& inputs, const PlatformOptions& platform) {
  std::string text;
  for (std::size_t i = 0; i < inputs.calibrations.size(); ++i) {
    for (const Run& run : inputs.runs[i]) {
      if (run.failure) continue;
      text += bucket_table(inputs.calibrations[i], run, platform);
      text += compare_servers(inputs.calibrations[i], run, platform);
    }
  }
  return text;
}

ExitCode validate_files(const ValidateOptions& options) {
  const Bounds bounds{parse_percent("--mean", options.mean),
                      parse_percent("--worst", options.worst),
                      parse_percent("--unstable", options.unstable)};
  check_files(inputs_of(options), {{options.json}});
  const PlatformOptions platform =
      options.platform.empty() ? PlatformOptions{} : read_platform(options.platform);
  const Inputs inputs = read_inputs(options.files);
  const std::vector<Validation> validations = predict(inputs, platform);
  for (const Validation& validation : validations) print(to_table(validation));
  if (options.timelines) print(timelines(inputs, platform));
  const Validation all = merge(validations);
  if (validations.size() > 1) print(summary_table(all));
  if (!options.json.empty()) write_validation(all, options.json);
  const std::vector<std::string> misses = check(all, bounds);
  for (const std::string& miss : misses) print("does not hold: " + miss + "\n");
  if (misses.empty() && bounds.any()) print("All bounds hold.\n");
  return misses.empty() ? ExitCode::done : ExitCode::check_failed;
}

}  // namespace

void add_validate(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("validate", "Compare predictions with measured runs");
  const auto options = std::make_shared<ValidateOptions>();
  command
      ->add_option("FILES", options->files,
                   "CALIBRATION RUN...: a calibration and runs of its visit; or several of both; "
                   "where workers are of several kinds, the calibration of each")
      ->required();
  command
      ->add_option("--platform", options->platform,
                   "Where the runs were measured, when not on the calibrated host: YAML with a "
                   "scenario's platform")
      ->type_name("FILE");
  command->add_option("--mean", options->mean, "Largest mean error of a group")->type_name("2%");
  command->add_option("--worst", options->worst, "Largest error of a point")->type_name("6%");
  command->add_option("--unstable", options->unstable, "Largest share of unstable points")
      ->type_name("20%");
  command->add_option("--json", options->json, "Write the comparison as JSON")->type_name("FILE");
  command->add_flag("--timelines", options->timelines,
                    "Compare when each bucket was ready, launched and done, and what servers saw");
  command->footer(
      "Example:\n  lockstep validate calibration.json measured/runs.json --mean 6% --worst 15%\n"
      "Exits with 1 where a bound does not hold.");
  command->callback(
      [&action, options] { action = [options] { return validate_files(*options); }; });
}

}  // namespace lockstep::cli
