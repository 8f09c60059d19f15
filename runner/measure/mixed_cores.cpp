#include "runner/measure/mixed_cores.h"

#include <fmt/format.h>

#include <cstddef>

#include "sim/core/error.h"

namespace lockstep::runner {

std::vector<int> mixed_cores(const std::vector<int>& all, int gpus, int rank, int threads) {
  const auto cores = std::ssize(all);
  const std::ptrdiff_t each = cores >= std::ptrdiff_t{4} * gpus ? 2 : 1;
  const std::ptrdiff_t left = cores - each * gpus;
  if (left < 1) {
    throw InputError({}, "--cpu-workers",
                     fmt::format("{} cores for {} GPUs and a worker beside them", cores, gpus),
                     "a core for each, as with --workers 1");
  }
  if (threads > left) {
    throw InputError(
        {}, "--threads",
        fmt::format("{} for the worker on cores, which has {} of {} cores", threads, left, cores),
        fmt::format("at most {}", left));
  }
  if (rank < gpus) {
    const auto begin = all.begin() + rank * each;
    return {begin, begin + each};
  }
  const auto begin = all.begin() + gpus * each;
  return {begin, begin + (threads > 0 ? threads : left)};
}

}  // namespace lockstep::runner
