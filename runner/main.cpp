#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "runner/measure/measure.h"
#include "sim/core/error.h"

int main(int argc, char** argv) {
  using lockstep::ExitCode;
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    lockstep::runner::measure(lockstep::runner::parse_options(argc, argv), arguments);
    return static_cast<int>(ExitCode::done);
  } catch (const lockstep::InputError& error) {
    std::fprintf(stderr, "lockstep-measure: %s\n", error.what());
    return static_cast<int>(ExitCode::bad_input);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lockstep-measure: %s\n", error.what());
    return static_cast<int>(ExitCode::run_failed);
  }
}
