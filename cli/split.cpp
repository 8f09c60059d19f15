#include "sim/split.h"

#include <memory>

#include "cli/commands.h"
#include "cli/output.h"
#include "sim/records/calibration.h"
#include "sim/report/split_table.h"
#include "sim/scenario/scenario.h"

namespace lockstep::cli {
namespace {

struct SplitOptions {
  std::string scenario;
  std::vector<std::string> overrides;
};

ExitCode split_scenario(const SplitOptions& options) {
  check_files({{options.scenario}}, {});
  const Scenario scenario = read_scenario(options.scenario, options.overrides);
  const Calibration calibration = read_calibration(scenario.calibration);
  try {
    print(to_table(find_split(scenario, calibration)));
  } catch (const InputError& error) {
    if (!error.location().file.empty()) throw;
    throw error.within(to_string(place_of(scenario, error.key())));
  }
  return ExitCode::done;
}

}  // namespace

void add_split(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "split", "Share a batch out among unlike workers, and who is worth having");
  const auto options = std::make_shared<SplitOptions>();
  command->add_option("SCENARIO", options->scenario, "Scenario of heterogeneous workers (YAML)")
      ->required();
  command->add_option("--set", options->overrides, "Change one value; may be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->delimiter('\0');
  command->footer("Example:\n  lockstep split scenarios/cpu_and_gpus.yaml --set total_batch=256");
  command->callback(
      [&action, options] { action = [options] { return split_scenario(*options); }; });
}

}  // namespace lockstep::cli
