#include "runner/measure/out_of_memory.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep::runner {

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  // cudaErrorMemoryAllocation's text, and what cuBLAS and cuDNN say.
  constexpr std::array<std::string_view, 3> kTexts{"out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
                                                   "CUDNN_STATUS_ALLOC_FAILED"};
  const std::string_view text = error.what();
  return std::ranges::any_of(
      kTexts, [text](std::string_view one) { return text.find(one) != std::string_view::npos; });
}

bool fits_in_memory(const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    return false;
  }
}

Run out_of_memory(Run run, int rank) {
  run.failure = Failure{.rank = rank, .what = "out of memory", .after_steps = 0};
  return run;
}

}  // namespace lockstep::runner
