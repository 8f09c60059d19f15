#include "calibration/published.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/percent.h"
#include "sim/records/calibration.h"

namespace lockstep::cli {
namespace {

struct PublishedOptions {
  std::vector<std::string> files;
  std::string json, median;
};

/// Several cases rest on one calibration.
CalibrationSource calibrations_once() {
  const auto known = std::make_shared<std::map<std::string, Calibration>>();
  return [known](const std::string& file) -> const Calibration& {
    const auto found = known->find(file);
    if (found != known->end()) return found->second;
    return known->emplace(file, read_calibration(file)).first->second;
  };
}

ExitCode compare_published(const PublishedOptions& options) {
  const std::optional<double> wanted = parse_percent("--median", options.median);
  check_files(options.files, {{options.json}});
  std::vector<PublishedCase> cases;
  for (const std::string& file : options.files) cases.push_back(read_published(file));
  const CalibrationSource known = calibrations_once();
  const PublishedReport report =
      predict_published(cases, [&](const std::string& file) -> const Calibration& {
        check_files({{file}}, {{options.json}});
        return known(file);
      });
  print(to_table(report));
  if (!options.json.empty()) write_published(report, options.json);
  bool holds =
      std::ranges::all_of(report.shapes, [](const PublishedShapeRow& row) { return row.holds; });
  const std::optional<double> median = median_error(report);
  if (wanted && median.value_or(1) > *wanted) {
    print(fmt::format("does not hold: a median error of at most {}\n", options.median));
    holds = false;
  }
  return holds ? ExitCode::done : ExitCode::check_failed;
}

}  // namespace

void add_published(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("published", "Compare predictions with published experiments");
  const auto options = std::make_shared<PublishedOptions>();
  command->add_option("FILES", options->files, "Cases (YAML), as in scenarios/published")
      ->required();
  command->add_option("--json", options->json, "Write the comparison as JSON")->type_name("FILE");
  command
      ->add_option("--median", options->median,
                   "Largest median error of predicted points that are not suspect")
      ->type_name("10%");
  command->footer(
      "Example:\n  lockstep published scenarios/published/cs744-vgg11.yaml --json published.json\n"
      "Exits with 1 where a shape or the bound does not hold.");
  command->callback(
      [&action, options] { action = [options] { return compare_published(*options); }; });
}

}  // namespace lockstep::cli
