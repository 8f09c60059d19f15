#include "calibration/check.h"

#include <fmt/core.h>

#include <algorithm>

#include "calibration/validate.h"

namespace lockstep {
namespace {

std::string above(const ValidationGroup& group, const char* what, double found, double bound) {
  return fmt::format("{}: {} error {:.2f} % is above {:.4g} %", group.name, what, found * 100,
                     bound * 100);
}

}  // namespace

std::vector<std::string> check(const Validation& validation, const Bounds& bounds) {
  std::vector<std::string> misses;
  int several = 0, unstable = 0, counted = 0;
  for (const ValidationGroup& group : validation.groups) {
    if (group.own_question) continue;
    for (const ValidationPoint& point : group.points) {
      several += point.workers > 1 ? 1 : 0;
      unstable += point.workers > 1 && !point.stable ? 1 : 0;
      counted += counts(point) ? 1 : 0;
    }
    if (bounds.mean && group.mean_error > *bounds.mean) {
      misses.push_back(above(group, "mean", group.mean_error, *bounds.mean));
    }
    if (bounds.worst && group.worst_error > *bounds.worst) {
      misses.push_back(above(group, "worst", group.worst_error, *bounds.worst));
    }
  }
  if (bounds.unstable && several == 0) misses.push_back("no point with several workers to check");
  if ((bounds.mean || bounds.worst) && counted == 0) {
    misses.push_back("no stable point with several workers to check");
  }
  if (bounds.unstable && unstable > *bounds.unstable * several) {
    misses.push_back(fmt::format("{} of {} points are unstable, above {:.4g} %", unstable, several,
                                 *bounds.unstable * 100));
  }
  return misses;
}

}  // namespace lockstep
