#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "runner/measure/measure.h"
#ifdef LOCKSTEP_CUDA
#include "runner/measure/cuda/visit_cuda.h"
#endif
#include "sim/core/error.h"

int main(int argc, char** argv) {
  using lockstep::ExitCode;
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const auto options = lockstep::runner::parse_options(argc, argv);
    if (options.device == "cpu") {
      return static_cast<int>(lockstep::runner::measure(options, arguments));
    } else {
#ifdef LOCKSTEP_CUDA
      lockstep::runner::measure_cuda(options, arguments);
#else
      throw lockstep::InputError({}, "--device", "this lockstep-measure has no GPU half",
                                 "build it with the preset cuda");
#endif
    }
    return static_cast<int>(ExitCode::done);
  } catch (const lockstep::InputError& error) {
    std::fprintf(stderr, "lockstep-measure: %s\n", error.what());
    return static_cast<int>(ExitCode::bad_input);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lockstep-measure: %s\n", error.what());
    return static_cast<int>(ExitCode::run_failed);
  }
}
