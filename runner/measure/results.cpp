#include "runner/measure/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "runner/measure/append.h"
#include "runner/measure/statistics.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

namespace fs = std::filesystem;

std::string part_name(const std::string& out, int repeat, const std::string& piece, int rank) {
  return fmt::format("{}/parts/repeat{}-{}-rank{}", out, repeat, piece, rank);
}

/// The repeat in the middle stands for a rank's phases and buckets.
RunRank middle(std::vector<RunRank> ranks) {
  std::ranges::sort(ranks, {}, &RunRank::step);
  return ranks[(ranks.size() - 1) / 2];
}

/// Another repeat's; `repeats` there are with it.
void add_servers(ServerStatistics& whole, const ServerStatistics& more, std::size_t repeats) {
  for (const StalenessCount& count : more.staleness) {
    const auto known =
        std::ranges::find(whole.staleness, count.staleness, &StalenessCount::staleness);
    if (known == whole.staleness.end()) {
      whole.staleness.push_back(count);
    } else {
      known->updates += count.updates;
    }
  }
  std::ranges::sort(whole.staleness, {}, &StalenessCount::staleness);
  whole.throughput += (more.throughput - whole.throughput) / static_cast<double>(repeats);
}

/// Adds to whole records what belongs to everybody once, and to each rank.
class Merging {
 public:
  void add(Part part, int rank) {
    Measurement& whole = whole_.measurement;
    references_.push_back(part.measurement.reference);
    append(whole.profiles, std::move(part.measurement.profiles));
    if (whole.id.empty()) {
      whole.id = part.measurement.id;
      whole.origin = part.measurement.origin;
      whole.launch_queue = part.measurement.launch_queue;
    }
    append(whole.collectives, std::move(part.measurement.collectives));
    append(whole.copies, std::move(part.measurement.copies));
    append(whole.interference, std::move(part.measurement.interference));
    append(whole.cores, std::move(part.measurement.cores));
    for (Run& run : part.runs) {
      for (RunRank& seen : run.ranks) ranks_[run.id][seen.rank].push_back(seen);
      if (rank == 0) add_repeats(std::move(run));
    }
  }

  Part whole() {
    for (Run& run : whole_.runs) {
      run.stable = is_stable(run, 1);  // how far its steps follow the index is known later
      run.ranks.clear();
      for (auto& [rank, seen] : ranks_[run.id]) run.ranks.push_back(middle(std::move(seen)));
    }
    if (!references_.empty()) whole_.measurement.reference = median_time(references_);
    return std::move(whole_);
  }

 private:
  void add_repeats(Run run) {
    const auto known = std::ranges::find(whole_.runs, run.id, &Run::id);
    if (known == whole_.runs.end()) {
      whole_.runs.push_back(std::move(run));
      return;
    }
    append(known->repeats, std::move(run.repeats));
    if (known->servers && run.servers)
      add_servers(*known->servers, *run.servers, known->repeats.size());
    if (!known->parity) known->parity = run.parity;
  }

  Part whole_;
  std::vector<Time> references_;
  std::map<std::string, std::map<int, std::vector<RunRank>>> ranks_;  // by run and rank
};

}  // namespace

bool holds_anything(const Measurement& measurement) {
  return !measurement.profiles.empty() || !measurement.collectives.empty() ||
         !measurement.cores.empty();
}

void save_part(const Part& part, const std::string& out, int repeat, const std::string& piece,
               int rank) {
  fs::create_directories(out + "/parts");
  const std::string name = part_name(out, repeat, piece, rank);
  write_measurement(part.measurement, name + ".measurement.json");
  write_runs(part.runs, name + ".runs.json");
}

Part merge_parts(const std::string& out, const std::vector<PieceDone>& done, int workers) {
  Merging merging;
  for (const PieceDone& piece : done) {
    for (int rank = 0; rank < workers; ++rank) {
      const std::string name = part_name(out, piece.repeat, piece.piece, rank);
      if (!fs::exists(name + ".runs.json")) continue;
      merging.add({.measurement = read_measurement(name + ".measurement.json"),
                   .runs = read_runs(name + ".runs.json")},
                  rank);
    }
  }
  return merging.whole();
}

void write_results(const Part& whole, const std::string& out) {
  if (holds_anything(whole.measurement)) {
    write_measurement(whole.measurement, out + "/measurement.json");
  }
  if (!whole.runs.empty()) write_runs(whole.runs, out + "/runs.json");
}

}  // namespace lockstep::runner
