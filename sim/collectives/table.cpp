#include "sim/collectives/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sim/collectives/algorithms.h"
#include "sim/collectives/within_host.h"
#include "sim/core/error.h"
#include "sim/platform/sharing.h"

namespace lockstep {
namespace {

[[noreturn]] void reject(const std::string& what, std::string_view hint) {
  throw InputError({}, "collective table", what, hint);
}

double as_double(Bytes bytes) {
  return static_cast<double>(bytes.count);
}

/// Costs are measurements, so they are interpolated as seconds and rounded once, at the end.
struct Reading {
  double seconds = 0;
  double share = 0;
};

/// latency + bytes * slope through both points, neither below zero.
Reading line(Bytes bytes, const CollectivePoint& near, const CollectivePoint& other) {
  const double run = as_double(other.bytes) - as_double(near.bytes);
  const double slope = std::max((other.p50 - near.p50).seconds() / run, 0.0);
  // Steeper than proportional has no latency; a line through the near point alone is left.
  const double steepest = near.p50.seconds() / std::max(as_double(near.bytes), 1.0);
  const double growth = std::min(slope, steepest);
  const double seconds = near.p50.seconds() + growth * (as_double(bytes) - as_double(near.bytes));
  const double share = seconds > 0 ? growth * as_double(bytes) / seconds : 0;
  return {seconds, std::clamp(share, 0.0, 1.0)};
}

Reading between(Bytes bytes, const CollectivePoint& low, const CollectivePoint& high) {
  const double run = as_double(high.bytes) - as_double(low.bytes);
  const double slope = (high.p50 - low.p50).seconds() / run;
  const double seconds = low.p50.seconds() + slope * (as_double(bytes) - as_double(low.bytes));
  const double share = seconds > 0 ? slope * as_double(bytes) / seconds : 0;
  return {seconds, std::clamp(share, 0.0, 1.0)};
}

Time host_between(Bytes bytes, const CollectivePoint& low, const CollectivePoint& high) {
  const double part =
      (as_double(bytes) - as_double(low.bytes)) / (as_double(high.bytes) - as_double(low.bytes));
  return Time::from_seconds(low.host.seconds() + part * (high.host - low.host).seconds());
}

void check(const CollectiveTable& table) {
  const auto rising = [](const CollectivePoint& a, const CollectivePoint& b) {
    return a.bytes < b.bytes;
  };
  if (table.points.empty() || table.workers < 2) {
    reject(fmt::format("{} with {} workers has no points", table.collective, table.workers),
           "measure at least two workers and one size");
  }
  const auto out_of_order = std::adjacent_find(
      table.points.begin(), table.points.end(),
      [&](const CollectivePoint& a, const CollectivePoint& b) { return !rising(a, b); });
  if (out_of_order != table.points.end() || table.points.front().bytes < Bytes{}) {
    reject(fmt::format("{} with {} workers is not ascending in bytes", table.collective,
                       table.workers),
           "one point for every size, the smallest first");
  }
}

const CollectiveTable& nearest(std::span<const CollectiveTable> tables, CollectiveKind kind,
                               int workers) {
  const CollectiveTable* best = nullptr;
  const auto distance = [workers](const CollectiveTable& table) {
    return std::abs(std::log(static_cast<double>(table.workers) / workers));
  };
  for (const CollectiveTable& table : tables) {
    if (table.collective != to_string(kind) || table.workers < 2) continue;
    const bool nearer = best == nullptr || distance(table) < distance(*best) ||
                        (distance(table) == distance(*best) && table.workers > best->workers);
    if (nearer) best = &table;
  }
  if (best == nullptr) {
    reject(fmt::format("no measured {} is there", to_string(kind)),
           "measure it with two workers or more, or name a network");
  }
  return *best;
}

/// From the workers of `table` to others by the algebra of rings, chains and roots.
TableCost along_ring(const CollectiveTable& table, CollectiveKind kind, int workers, Bytes bytes) {
  const std::int64_t m = table.workers, n = workers;
  if (m == n) return lookup(table, bytes);
  if (goes_in_parts(kind)) {
    TableCost cost = lookup(table, Bytes{multiply_divide(bytes.count, m, n)});
    cost.device = Time::picoseconds(multiply_divide(cost.device.ps(), n - 1, m - 1));
    cost.other_workers = true;
    return cost;
  }
  TableCost cost = lookup(table, bytes);
  const double more = static_cast<double>(n - 1) / static_cast<double>(m - 1);
  const bool chain = kind == CollectiveKind::broadcast;
  const double latency = (1 - cost.bandwidth_share) * (chain ? more : 1);
  cost.bandwidth_share *= chain ? 1 : more;
  const double factor = latency + cost.bandwidth_share;
  cost.device = Time::from_seconds(cost.device.seconds() * factor);
  cost.bandwidth_share /= factor;
  cost.other_workers = true;
  return cost;
}

}  // namespace

TableCost lookup(const CollectiveTable& table, Bytes bytes) {
  check(table);
  const std::vector<CollectivePoint>& points = table.points;
  const auto at =
      std::lower_bound(points.begin(), points.end(), bytes,
                       [](const CollectivePoint& point, Bytes size) { return point.bytes < size; });
  const bool exact = at != points.end() && at->bytes == bytes;
  const auto last = static_cast<std::ptrdiff_t>(points.size()) - 1;
  const std::ptrdiff_t above =
      std::clamp<std::ptrdiff_t>(at - points.begin(), 1, std::max<std::ptrdiff_t>(last, 1));
  TableCost cost;
  cost.beyond_sizes = bytes < points.front().bytes || bytes > points.back().bytes;
  if (last == 0) {
    // One size says nothing about latency: all of it above that size is bandwidth, below latency.
    const CollectivePoint& only = points.front();
    const bool larger = bytes > only.bytes && only.bytes > Bytes{};
    cost.device =
        larger ? Time::picoseconds(multiply_divide(only.p50.ps(), bytes.count, only.bytes.count))
               : only.p50;
    cost.host = only.host;
    cost.between = table.call_between;
    cost.bandwidth_share = larger ? 1 : 0;
    return cost;
  }
  const CollectivePoint& low = points[static_cast<std::size_t>(above) - 1];
  const CollectivePoint& high = points[static_cast<std::size_t>(above)];
  const Reading reading = bytes < points.front().bytes  ? line(bytes, low, high)
                          : bytes > points.back().bytes ? line(bytes, high, low)
                                                        : between(bytes, low, high);
  cost.device = exact ? at->p50 : Time::from_seconds(reading.seconds);
  cost.host = exact               ? at->host
              : cost.beyond_sizes ? (bytes < low.bytes ? low.host : high.host)
                                  : host_between(bytes, low, high);
  cost.bandwidth_share = reading.share;
  cost.between = table.call_between;
  return cost;
}

TableCost estimate(std::span<const CollectiveTable> tables, CollectiveKind kind, int workers,
                   Bytes bytes) {
  LOCKSTEP_ASSERT(workers >= 2, "one worker has nobody to exchange with");
  const CollectiveTable& table = nearest(tables, kind, workers);
  if (table.workers == workers) return lookup(table, bytes);
  if (table.backend == "nccl" && table.topology == kOneHost) {
    return within_host(tables, kind, table, workers, bytes);
  }
  return along_ring(table, kind, workers, bytes);
}

StepCost effective_step(std::span<const CollectiveTable> tables, CollectiveKind kind, int workers,
                        Bytes bytes) {
  // All-reduce: 2(n-1) messages of S/n; all-gather and the like half as many. Broadcast: n - 1
  // messages of S, one after the other. Of the others n - 1 at once, through one port.
  const bool parts = goes_in_parts(kind);
  const double others = workers - 1;
  const double turns = kind == CollectiveKind::all_reduce ? 2 * others : others;
  const double rounds = parts || kind == CollectiveKind::broadcast ? turns : 1;
  const double size = as_double(bytes) * (parts ? turns / workers : others);
  const CollectiveTable& table = nearest(tables, kind, workers);
  const double seconds = along_ring(table, kind, workers, bytes).device.seconds();
  const double latency =
      std::min(along_ring(table, kind, workers, Bytes{}).device.seconds(), seconds);
  StepCost step;
  step.latency = Time::from_seconds(latency / rounds);
  const double flowing = seconds - latency;
  if (size > 0) {
    // Where latency is nearly all of it, what is left may look faster than any link.
    constexpr auto kMost = static_cast<double>(kFastestLink.bytes_per_second);
    const double rate = flowing > 0 ? std::clamp(size / flowing, 1.0, kMost) : kMost;
    step.rate.bytes_per_second = std::llround(rate);
  }
  return step;
}

}  // namespace lockstep
