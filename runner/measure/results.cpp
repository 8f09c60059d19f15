#include "runner/measure/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "runner/measure/parts_folder.h"
#include "runner/measure/statistics.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

namespace fs = std::filesystem;

std::string part_name(const std::string& out, int repeat, int rank) {
  return fmt::format("{}/parts/repeat{}-rank{}", out, repeat, rank);
}

template <typename T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

/// Whether the repeats agree at equal speed. Where they lie further apart than this share of their
/// mean, the machine changed in ways that the index does not see.
bool repeats_agree(const Run& run) {
  constexpr double kApart = 0.25;
  std::vector<double> steps;
  for (const RunRepeat& repeat : run.repeats) {
    const SpeedIndex& index = repeat.speed_index;
    steps.push_back(repeat.step.p50.seconds() / (index.before.seconds() + index.after.seconds()));
  }
  if (steps.size() < 2) return true;
  const auto [least, most] = std::ranges::minmax(steps);
  return most - least <= kApart * (most + least) / 2;
}

/// The repeat in the middle stands for a rank's phases and buckets.
RunRank middle(std::vector<RunRank> ranks) {
  std::ranges::sort(ranks, {}, &RunRank::step);
  return ranks[(ranks.size() - 1) / 2];
}

}  // namespace

void save_part(const Part& part, const std::string& out, int repeat, int rank) {
  fs::create_directories(out + "/parts");
  const std::string name = part_name(out, repeat, rank);
  write_measurement(part.measurement, name + ".measurement.json");
  write_runs(part.runs, name + ".runs.json");
}

Part merge_parts(const std::string& out) {
  Part whole;
  std::vector<Time> references;
  std::map<std::string, std::map<int, std::vector<RunRank>>> ranks;  // by run and rank
  std::map<std::string, int> unstable;                               // repeats, by run
  for (int repeat = 0;; ++repeat) {
    int rank = 0;
    for (;; ++rank) {
      const std::string name = part_name(out, repeat, rank);
      if (!fs::exists(name + ".runs.json")) break;
      Part part{.measurement = read_measurement(name + ".measurement.json"),
                .runs = read_runs(name + ".runs.json")};
      references.push_back(part.measurement.reference);
      append(whole.measurement.profiles, part.measurement.profiles);
      if (whole.measurement.id.empty()) {
        whole.measurement.id = part.measurement.id;
        whole.measurement.origin = part.measurement.origin;
        whole.measurement.launch_queue = part.measurement.launch_queue;
      }
      append(whole.measurement.collectives, part.measurement.collectives);
      append(whole.measurement.copies, part.measurement.copies);
      append(whole.measurement.interference, part.measurement.interference);
      append(whole.measurement.cores, part.measurement.cores);
      for (Run& run : part.runs) {
        for (RunRank& seen : run.ranks) ranks[run.id][seen.rank].push_back(seen);
        if (rank != 0) continue;
        unstable[run.id] += run.stable ? 0 : 1;
        const auto known = std::ranges::find(whole.runs, run.id, &Run::id);
        if (known == whole.runs.end()) {
          whole.runs.push_back(std::move(run));
        } else {
          append(known->repeats, run.repeats);
        }
      }
    }
    if (rank == 0) break;
  }
  for (Run& run : whole.runs) {
    // The median over repeats stands for the run: it is as stable as most of them.
    run.stable = 2 * unstable[run.id] <= static_cast<int>(run.repeats.size()) && repeats_agree(run);
    run.ranks.clear();
    for (auto& [rank, seen] : ranks[run.id]) run.ranks.push_back(middle(std::move(seen)));
  }
  if (!references.empty()) whole.measurement.reference = median_time(references);
  return whole;
}

bool holds_anything(const Measurement& measurement) {
  return !measurement.profiles.empty() || !measurement.collectives.empty() ||
         !measurement.cores.empty();
}

void write_results(const Part& whole, const std::string& out) {
  if (holds_anything(whole.measurement)) {
    write_measurement(whole.measurement, out + "/measurement.json");
  }
  if (!whole.runs.empty()) write_runs(whole.runs, out + "/runs.json");
  remove_own_parts(out);
}

}  // namespace lockstep::runner
