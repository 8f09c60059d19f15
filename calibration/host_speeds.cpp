#include "calibration/host_speeds.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "calibration/robust.h"

namespace lockstep {
namespace {

/// One process: the times of its ranks, rank by rank.
using Process = std::vector<std::vector<Time>>;

/// Those that lack a rank are left out.
std::vector<Process> whole_processes(const std::vector<HostTimes>& hosts) {
  std::map<int, std::map<int, std::vector<Time>>> by_process;
  for (const HostTimes& one : hosts) {
    if (!one.times.empty()) by_process[one.process][one.rank] = one.times;
  }
  std::size_t ranks = 0;
  for (const auto& [process, of_rank] : by_process) ranks = std::max(ranks, of_rank.size());
  std::vector<Process> whole;
  for (const auto& [process, of_rank] : by_process) {
    if (of_rank.size() < ranks) continue;
    Process& rows = whole.emplace_back();
    for (const auto& [rank, times] : of_rank) rows.push_back(times);
  }
  return whole;
}

/// Row by row.
std::vector<Time> medians(const Process& rows) {
  std::vector<Time> result;
  for (const std::vector<Time>& row : rows) result.push_back(median(row));
  return result;
}

/// Column by column.
std::vector<Time> medians_over(const std::vector<std::vector<Time>>& processes) {
  std::vector<Time> result;
  for (std::size_t i = 0; i < processes.front().size(); ++i) {
    std::vector<Time> column;
    for (const std::vector<Time>& row : processes) column.push_back(row[i]);
    result.push_back(median(std::move(column)));
  }
  return result;
}

/// Of each step the fastest rank's time, the next one's, ...: their medians over the steps.
std::vector<Time> ordered_medians(const Process& rows) {
  std::size_t steps = rows.front().size();
  for (const std::vector<Time>& row : rows) steps = std::min(steps, row.size());
  Process ordered(rows.size());
  for (std::size_t step = 0; step < steps; ++step) {
    std::vector<Time> side_by_side;
    for (const std::vector<Time>& row : rows) side_by_side.push_back(row[step]);
    std::ranges::sort(side_by_side);
    for (std::size_t i = 0; i < rows.size(); ++i) ordered[i].push_back(side_by_side[i]);
  }
  return medians(ordered);
}

}  // namespace

std::vector<double> hosts_of_ranks(const std::vector<HostTimes>& hosts) {
  const std::vector<Process> processes = whole_processes(hosts);
  if (processes.empty() || processes.front().size() < 2) return {};
  std::vector<std::vector<Time>> own_of, ordered_of;
  std::vector<Time> all;
  for (const Process& process : processes) {
    own_of.push_back(medians(process));
    ordered_of.push_back(ordered_medians(process));
    all.insert(all.end(), own_of.back().begin(), own_of.back().end());
  }
  const double center = median(std::move(all)).seconds();
  if (center <= 0) return {};
  const std::vector<Time> own = medians_over(own_of);
  const std::vector<Time> ordered = medians_over(ordered_of);
  std::vector<std::size_t> ranks(own.size());
  std::iota(ranks.begin(), ranks.end(), std::size_t{0});
  std::ranges::stable_sort(ranks, {}, [&own](std::size_t rank) { return own[rank]; });
  std::vector<double> factors(own.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    factors[ranks[i]] = ordered[i].seconds() / center;
  }
  return factors;
}

}  // namespace lockstep
