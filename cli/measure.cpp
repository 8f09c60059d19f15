#include <cerrno>
#include <cstring>

#include "cli/commands.h"
#include "cli/programs.h"

namespace lockstep::cli {

void add_measure(CLI::App& app) {
  // For the list of subcommands; its arguments never get here.
  app.add_subcommand("measure", "Measure this machine: profiles, collectives, real runs");
}

void run_measure(const std::vector<std::string>& arguments) {
  const auto beside = program_folder() / "lockstep-measure";
  std::error_code error;
  const bool there = std::filesystem::exists(beside, error);
  become(there ? beside.string() : "lockstep-measure", arguments);
  if (errno == ENOENT) {
    throw RunError(
        "lockstep-measure is not built; build it with LOCKSTEP_RUNNER=ON (it needs LibTorch and "
        "Gloo: make setup)");
  }
  throw RunError(beside.string() + " cannot be started (" + std::strerror(errno) + ")");
}

}  // namespace lockstep::cli
