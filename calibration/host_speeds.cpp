#include "calibration/host_speeds.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "calibration/robust.h"

namespace lockstep {
namespace {

/// By process: the times of its ranks, rank by rank. Processes that lack a rank are left out.
std::vector<std::vector<Time>> whole_processes(const std::vector<HostTime>& times) {
  std::map<int, std::map<int, Time>> by_process;
  for (const HostTime& one : times) by_process[one.process][one.rank] = one.time;
  std::size_t ranks = 0;
  for (const auto& [process, of_rank] : by_process) ranks = std::max(ranks, of_rank.size());
  std::vector<std::vector<Time>> whole;
  for (const auto& [process, of_rank] : by_process) {
    if (of_rank.size() < ranks) continue;
    std::vector<Time>& row = whole.emplace_back();
    for (const auto& [rank, time] : of_rank) row.push_back(time);
  }
  return whole;
}

/// Column by column.
std::vector<Time> medians(const std::vector<std::vector<Time>>& rows) {
  std::vector<Time> result;
  for (std::size_t i = 0; i < rows.front().size(); ++i) {
    std::vector<Time> column;
    for (const std::vector<Time>& row : rows) column.push_back(row[i]);
    result.push_back(median(std::move(column)));
  }
  return result;
}

}  // namespace

std::vector<double> hosts_of_ranks(const std::vector<HostTime>& times) {
  std::vector<std::vector<Time>> rows = whole_processes(times);
  if (rows.empty() || rows.front().size() < 2) return {};
  const std::vector<Time> own = medians(rows);
  for (std::vector<Time>& row : rows) std::ranges::sort(row);
  const std::vector<Time> ordered = medians(rows);
  std::vector<Time> all;
  for (const std::vector<Time>& row : rows) all.insert(all.end(), row.begin(), row.end());
  const double center = median(std::move(all)).seconds();
  if (center <= 0) return {};
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
