#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/programs.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

struct PlotOptions {
  std::vector<std::string> records;
  std::string out;
};

/// The first that is there: installed beside the program, else in the tree it was built from.
fs::path plots_folder() {
  for (const fs::path& folder :
       {program_folder() / "../share/lockstep/plots", fs::path(LOCKSTEP_SOURCE_DIR) / "plots"}) {
    if (fs::exists(folder / "lockstep_plots" / "__main__.py")) return fs::canonical(folder);
  }
  throw RunError("the plots package is not installed beside lockstep; install the project again");
}

/// Of the environment that `make setup` made; else the system's.
std::string python() {
  const char* named = std::getenv("LOCKSTEP_VENV");
  const bool is_named = named != nullptr && *named != '\0';  // make exports it empty
  const fs::path environment = is_named ? fs::path(named) : fs::path(LOCKSTEP_SOURCE_DIR) / ".venv";
  const fs::path python = environment / "bin" / "python";
  std::error_code error;
  return fs::exists(python, error) ? python.string() : "python3";
}

ExitCode plot_files(const PlotOptions& options) {
  for (const std::string& file : options.records) {
    std::error_code error;
    if (!fs::exists(file, error)) {
      throw InputError(
          {file, 0, 0, ""}, "", "there is no such file",
          "give results, validations, runs, calibrations, measurements, schedules or traces");
    }
  }
  std::string path = plots_folder().string();
  const char* old = std::getenv("PYTHONPATH");
  if (old != nullptr && *old != '\0') path += std::string(":") + old;
  ::setenv("PYTHONPATH", path.c_str(), 1);
  std::vector<std::string> arguments{"-m", "lockstep_plots"};
  arguments.insert(arguments.end(), options.records.begin(), options.records.end());
  arguments.insert(arguments.end(), {"-o", options.out});
  const std::string interpreter = python();
  become(interpreter, arguments);
  throw RunError(interpreter + " cannot be started (" + std::strerror(errno) +
                 "); it draws the figures: make setup");
}

}  // namespace

void add_plot(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("plot", "Draw figures and a report from result files");
  const auto options = std::make_shared<PlotOptions>();
  command
      ->add_option(
          "RESULT", options->records,
          "Results, validations, runs, calibrations, measurements, schedules of collectives "
          "and traces (JSON)")
      ->required();
  command->add_option("-o,--out", options->out, "Folder for the figures and report.html")
      ->required()
      ->type_name("DIR");
  command->footer(
      "Example:\n  lockstep plot result.json validation.json -o plots\n"
      "  lockstep plot simulated.trace.json measured/vgg11-b32-ddp-n2.trace.json -o plots");
  command->callback([&action, options] { action = [options] { return plot_files(*options); }; });
}

}  // namespace lockstep::cli
