#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/output.h"
#include "sim/scenario/fields.h"

namespace lockstep::cli {
namespace {

constexpr const char* kAbout =
    "Predicts how data-parallel training scales, and checks itself against measured runs.";
constexpr const char* kExample =
    "From nothing to a checked prediction:\n"
    "  lockstep measure --workers 2 -o measured\n"
    "  lockstep calibrate measured/measurement.json -o calibration.json\n"
    "  lockstep validate calibration.json measured/runs.json\n"
    "  lockstep simulate scenario.yaml --json result.json\n"
    "  lockstep plot result.json -o plots\n"
    "Exit codes: 0 done, 1 a check did not hold, 2 bad input, 3 a run failed.";

/// CLI11's exceptions that are no mistakes: --help and --version.
ExitCode answer(const CLI::App& app, const CLI::ParseError& request) {
  if (request.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    app.exit(request, output_stream(), output_stream());
    flush_output();
    return ExitCode::done;
  }
  std::string command = app.get_name();
  for (const CLI::App* chosen : app.get_subcommands()) command += " " + chosen->get_name();
  report_error(std::string(request.what()) + "; see " + command + " --help");
  return ExitCode::bad_input;
}

/// The parser would only say that a subcommand is missing.
void refuse_unknown_command(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2 || *argv[1] == '\0' || *argv[1] == '-') return;
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  if (std::ranges::find(known, argv[1]) != known.end()) return;
  const std::string meant = nearest_word(argv[1], known);
  throw InputError(
      {}, "", fmt::format("'{}' is no command", std::string(argv[1]).substr(0, 40)),
      meant.empty() ? "see lockstep --help" : fmt::format("did you mean '{}'?", meant));
}

ExitCode parse_and_run(int argc, const char* const* argv) {
  // Every flag after `measure` is lockstep-measure's own, --help included.
  if (argc >= 2 && std::string_view(argv[1]) == "measure") {
    run_measure(std::vector<std::string>(argv + 2, argv + argc));
  }
  CLI::App app(kAbout, "lockstep");
  app.footer(kExample);
  app.set_version_flag("--version", std::string("lockstep ") + LOCKSTEP_VERSION);
  app.require_subcommand(1);
  Action action;
  add_measure(app);
  add_calibrate(app, action);
  add_simulate(app, action);
  add_validate(app, action);
  add_published(app, action);
  add_threads(app, action);
  add_compare(app, action);
  add_split(app, action);
  add_plot(app, action);
  add_collective(app, action);
  refuse_unknown_command(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& request) {
    return answer(app, request);
  }
  const ExitCode code = action();
  flush_output();
  return code;
}

}  // namespace

ExitCode run(int argc, const char* const* argv) {
  // A reader that goes away and a limit on files show as failed writes, not as signals.
  for (const int ignored : {SIGPIPE, SIGXFSZ}) std::signal(ignored, SIG_IGN);
  try {
    return parse_and_run(argc, argv);
  } catch (const InputError& error) {
    report_error(error.what());
    return ExitCode::bad_input;
  } catch (const RunError& error) {
    report_error(error.what());
    return ExitCode::run_failed;
  } catch (const std::exception& error) {
    report_error(std::string("unexpected: ") + error.what());
    return ExitCode::run_failed;
  }
}

}  // namespace lockstep::cli
