#include "runner/measure/launch_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runner/measure/append.h"

namespace lockstep::runner {
namespace {

std::filesystem::path part_file(const std::string& folder, const LaunchPart& part,
                                const char* what) {
  return std::filesystem::path(folder) / "parts" /
         fmt::format("{}-{}-{}.{}.json", part.workers, part.process, part.rank, what);
}

bool same_configuration(const Run& a, const Run& b) {
  return a.model == b.model && a.batch_per_worker == b.batch_per_worker && a.workers == b.workers &&
         a.strategy == b.strategy && a.precision == b.precision && a.sync == b.sync &&
         a.graph == b.graph;
}

void merge_measurement(Measurement from, Measurement& into) {
  append(into.profiles, std::move(from.profiles));
  append(into.collectives, std::move(from.collectives));
  append(into.copies, std::move(from.copies));
  append(into.interference, std::move(from.interference));
  into.launch_queue = std::max(into.launch_queue, from.launch_queue);
  if (!from.origin.machine.gpus.empty()) {
    into.origin.machine.gpus = std::move(from.origin.machine.gpus);
  }
}

/// `from` is what one rank saw of one repeat.
void merge_run(Run from, int rank, std::vector<Run>& into) {
  const auto found = std::find_if(into.begin(), into.end(),
                                  [&](const Run& run) { return same_configuration(run, from); });
  if (found == into.end()) {
    if (rank == 0) into.push_back(std::move(from));
    return;
  }
  if (rank > 0) {
    append(found->ranks, std::move(from.ranks));
    return;
  }
  append(found->repeats, std::move(from.repeats));
  // What worked in one repeat counts, whatever happened in others.
  found->failure = found->repeats.empty() ? std::move(from.failure) : std::nullopt;
  if (!from.ranks.empty()) found->ranks = std::move(from.ranks);
}

}  // namespace

void write_part(const std::string& folder, const LaunchPart& part, const Measurement& measurement,
                const std::vector<Run>& runs) {
  std::filesystem::create_directories(std::filesystem::path(folder) / "parts");
  write_measurement(measurement, part_file(folder, part, "measurement").string());
  if (!runs.empty()) write_runs(runs, part_file(folder, part, "runs").string());
}

std::vector<Run> runs_of_part(const std::string& folder, const LaunchPart& part) {
  const auto file = part_file(folder, part, "runs");
  return std::filesystem::exists(file) ? read_runs(file.string()) : std::vector<Run>{};
}

void merge_launch(const std::string& folder, int workers, int process, Measurement& measurement,
                  std::vector<Run>& runs, Measurement* of_cores) {
  for (int rank = 0; rank < workers; ++rank) {
    const LaunchPart part{workers, process, rank};
    const bool cores = of_cores != nullptr && rank == workers - 1;
    const auto measured = part_file(folder, part, "measurement");
    if (std::filesystem::exists(measured)) {
      merge_measurement(read_measurement(measured.string()), cores ? *of_cores : measurement);
    }
    for (Run& run : runs_of_part(folder, part)) merge_run(std::move(run), rank, runs);
  }
}

Time reference_of(const Measurement& measurement, const std::vector<Run>& runs) {
  std::vector<Time> times;
  const auto add = [&times](const SpeedIndex& index) {
    for (const Time time : {index.before, index.after}) {
      if (time > Time()) times.push_back(time);
    }
  };
  for (const ProfileSample& sample : measurement.profiles) add(sample.speed_index);
  for (const CollectiveSample& sample : measurement.collectives) add(sample.speed_index);
  for (const Run& run : runs) {
    for (const RunRepeat& repeat : run.repeats) add(repeat.speed_index);
  }
  if (times.empty()) return {};
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace lockstep::runner
