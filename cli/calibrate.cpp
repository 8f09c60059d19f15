#include "calibration/calibrate.h"

#include <memory>

#include "calibration/summary.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace lockstep::cli {
namespace {

struct CalibrateOptions {
  std::vector<std::string> measurements;
  std::string out;
};

ExitCode calibrate_files(const CalibrateOptions& options) {
  check_files(options.measurements, {{options.out}});
  std::vector<Measurement> measurements;
  for (const std::string& file : options.measurements) {
    measurements.push_back(read_measurement(file));
  }
  const Calibration calibration = calibrate(measurements);
  write_calibration(calibration, options.out);
  print(summary(calibration) + "\nNext: lockstep validate " + options.out +
        " RUNS.json, or name it in a scenario (calibration: " + options.out + ")\n");
  return ExitCode::done;
}

}  // namespace

void add_calibrate(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("calibrate", "Turn measurements of a machine into numbers");
  const auto options = std::make_shared<CalibrateOptions>();
  command
      ->add_option("MEASUREMENT", options->measurements,
                   "What lockstep measure wrote (measurement.json); several of one visit, and "
                   "collectives of others")
      ->required();
  command->add_option("-o,--out", options->out, "Calibration to write")
      ->required()
      ->type_name("FILE");
  command->footer("Example:\n  lockstep calibrate measured/measurement.json -o calibration.json");
  command->callback(
      [&action, options] { action = [options] { return calibrate_files(*options); }; });
}

}  // namespace lockstep::cli
