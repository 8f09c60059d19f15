#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "sim/core/error.h"

namespace lockstep::cli {

/// What the chosen subcommand does, once its flags are parsed.
using Action = std::function<ExitCode()>;

// Each adds a subcommand to `app`, which sets `action` where it is chosen.
void add_simulate(CLI::App& app, Action& action);
void add_measure(CLI::App& app);
void add_calibrate(CLI::App& app, Action& action);
void add_validate(CLI::App& app, Action& action);
void add_published(CLI::App& app, Action& action);
void add_threads(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_split(CLI::App& app, Action& action);
void add_plot(CLI::App& app, Action& action);
void add_collective(CLI::App& app, Action& action);

/// `lockstep measure ARGUMENTS`: becomes lockstep-measure. Throws RunError where it is not there.
[[noreturn]] void run_measure(const std::vector<std::string>& arguments);

/// Parses the command line and does it. Errors are reported here, and only here: one line on
/// stderr, and the exit code of the design page.
ExitCode run(int argc, const char* const* argv);

}  // namespace lockstep::cli
