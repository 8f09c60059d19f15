#include "runner/measure/options_check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runner/models/zoo.h"
#include "sim/core/error.h"

namespace lockstep::runner {

void check_servers(const MeasureOptions& options) {
  const auto named = std::ranges::count(options.strategies, "parameter_server");
  if (named == 0) {
    for (const char* flag : {"servers", "staleness"}) {
      if (options.settings.at(flag) == (flag == std::string("servers") ? "1" : "0")) continue;
      throw InputError({}, fmt::format("--{}", flag), "no strategy has servers",
                       "--strategies parameter_server");
    }
    return;
  }
  if (named > 1) throw InputError({}, "--strategies", "parameter_server is named twice");
  if (options.only_collectives) {
    throw InputError({}, "--collectives", "has nothing to do with parameter_server");
  }
  if (options.device == "cpu" && options.workers < 2) {
    throw InputError({}, "--workers", "one worker alone needs no server", "--workers 2");
  }
}

namespace {

void check_split_fits(const MeasureOptions& options) {
  const bool given = options.split_measured || !options.split.empty();
  const auto& strategies = options.strategies;
  const bool used = std::ranges::find(strategies, "heterogeneous") != strategies.end();
  if (used && options.device == "cuda" && options.cpu_workers == 0) {
    throw InputError({}, "--strategies", "heterogeneous GPUs need a worker on cores among them",
                     "--cpu-workers 1, or --device cpu");
  }
  if (!given) return;
  if (!used) throw InputError({}, "--split", "is of one strategy", "--strategies heterogeneous");
  if (options.data != "synthetic") {
    throw InputError({}, "--split", "unequal shares are of synthetic samples", "no --data");
  }
  if (options.split_measured && options.compute == Compute::replay) {
    throw InputError({}, "--split", "who waits has no speed to measure", "shares, as in 24,8");
  }
}

/// Of a worker on cores beside GPUs.
void check_cpu_workers(const MeasureOptions& options) {
  if (options.cpu_workers == 0) {
    if (options.combine_on_host == std::vector<bool>{false}) return;
    throw InputError({}, "--combine", "says where cores and GPUs add their gradients",
                     "--device cuda --cpu-workers 1");
  }
  if (options.device != "cuda") {
    throw InputError({}, "--cpu-workers", "stand beside GPUs", "--device cuda, or --workers");
  }
  const auto other = [](const std::string& name) {
    return name != "heterogeneous" && name != "single";
  };
  const auto& strategies = options.strategies;
  if (std::ranges::any_of(strategies, other) ||
      std::ranges::find(strategies, "heterogeneous") == strategies.end()) {
    throw InputError({}, "--cpu-workers", "share batches with GPUs in one strategy only",
                     "--strategies heterogeneous");
  }
  if (options.search_batches) {
    throw InputError({}, "--batches", "a batch that is shared out is none to search for",
                     "a list, as in 64,256");
  }
  if (options.data != "synthetic") {
    throw InputError({}, "--data", "unequal shares are of synthetic samples", "no --data");
  }
  if (options.dry_run) {
    throw InputError({}, "--dry-run", "does not know how long GPUs and cores take together",
                     "without --cpu-workers");
  }
  if (!options.stragglers.empty()) {
    throw InputError({}, "--straggler", "slows workers that are alike", "without --cpu-workers");
  }
}

}  // namespace

void check_together(const MeasureOptions& options) {
  check_split_fits(options);
  check_cpu_workers(options);
  const auto refuse = [](const char* flag, const std::string& what, const std::string& hint = "") {
    throw InputError({}, flag, what, hint);
  };
  const bool replayed = options.compute == Compute::replay;
  const std::vector<std::string> known = model_names();
  for (const std::string& model : options.models) {
    if (!replayed && std::ranges::find(known, model) == known.end()) {
      refuse("--models", fmt::format("there is no model \"{}\"", model),
             fmt::format("of {}", fmt::join(known, ", ")));
    }
  }
  const bool cuda = options.device == "cuda";
  const auto& strategies = options.strategies;
  if (!cuda && std::ranges::find(strategies, "data_parallel") != strategies.end()) {
    refuse("--strategies", "data_parallel is one process that drives GPUs", "--device cuda");
  }
  if (!cuda && options.precision == Precision::tf32) {
    refuse("--precision", "tf32 is arithmetic of GPUs", "--device cuda, or fp32 or bf16");
  }
  if (!cuda && options.search_batches) {
    refuse("--batches", "auto fills the memory of GPUs", "--device cuda, or a list as in 16,32");
  }
  if (cuda && options.budget > Time{}) {
    refuse("--budget", "is for --device cpu", "on GPUs --block and --repeats say how long");
  }
  if (cuda && replayed) refuse("--compute", "a replay waits on cores", "--device cpu");
  if (cuda && options.only_collectives) refuse("--collectives", "measures between cores");
  if (!options.stragglers.empty() &&
      std::ranges::find(strategies, "data_parallel") != strategies.end()) {
    refuse("--straggler", "data_parallel is one process, with no worker to slow", "leave it out");
  }
  if (cuda && !options.calibration.empty()) refuse("--calibration", "is for runs on cores");
  if (options.only_collectives && !options.calibration.empty()) {
    refuse("--collectives", "has nothing to do with --calibration");
  }
  if (replayed && options.calibration.empty()) {
    refuse("--compute", "a replay needs a calibration", "--calibration FILE");
  }
  if (!replayed && options.slow_motion > 1) {
    refuse("--slow-motion", "is of what is replayed", "--compute replay");
  }
  if (options.data == "cifar10" && options.data_directory.empty()) {
    refuse("--data", "cifar10 lies where the user has it", "--data-dir FOLDER");
  }
  if (replayed && options.data != "synthetic") refuse("--data", "a replay loads nothing");
  if (options.loaders > 0 && (replayed || options.data == "synthetic")) {
    refuse("--loaders", "there is nothing to load", "name a data set with --data");
  }
}

}  // namespace lockstep::runner
