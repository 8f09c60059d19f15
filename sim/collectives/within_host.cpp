#include "sim/collectives/within_host.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/core/error.h"

namespace lockstep {
namespace {

/// How a collective grows from two workers on.
struct Growth {
  double latency = 0;  ///< d / a(2): each doubling of the workers adds this share of it
  double link = 0;     ///< q f(2) / g(2): the share of the bytes' time that the link has
};

/// On 4 x H100 an all-reduce of 1 KiB took 6.7, 8.3 and 9.7 us on 2, 3 and 4 GPUs (d = 0.45 a(2)),
/// and 128 MiB 478, 572 and 615 us (q = 0.58 and 0.57); on H200s 256 MiB took 899, 1090 and 1183 us
/// (0.64 and 0.63). A broadcast of 1 KiB took 5.4, 5.4 and 5.8 us, of 64 KiB 6.1, 8.2 and 8.5, of
/// 128 MiB 379, 393 and 393. Of a reduce it is taken to be the same. Gather and scatter were
/// measured on two GPUs only: everything through the root's link.
Growth usual_growth(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return {.latency = 0.45, .link = 0.6};
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return {.latency = 0.2, .link = 0.1};
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      break;
  }
  return {.latency = 0, .link = 1};
}

/// f(n): how often each byte passes over a link.
double link_passes(CollectiveKind kind, double n) {
  const bool root = kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
  return root ? n - 1 : 2 * (n - 1) / n;
}

struct Sample {
  double x = 0, y = 0;
};

/// y = offset + slope x through all samples, neither below zero. Samples of one x have no slope.
struct Line {
  double offset = 0, slope = 0;
  double at(double x) const { return offset + slope * x; }
};
Line rising_line(const std::vector<Sample>& samples) {
  const auto count = static_cast<double>(samples.size());
  Sample mean;
  for (const Sample& sample : samples) {
    mean.x += sample.x / count;
    mean.y += sample.y / count;
  }
  double spread = 0, product = 0;
  for (const Sample& sample : samples) {
    spread += (sample.x - mean.x) * (sample.x - mean.x);
    product += (sample.x - mean.x) * (sample.y - mean.y);
  }
  const double steepest = mean.x > 0 ? std::max(0.0, mean.y / mean.x) : 0;
  const double slope = spread > 0 ? std::clamp(product / spread, 0.0, steepest) : 0;
  return {.offset = mean.y - slope * mean.x, .slope = slope};
}

double latency_of(const CollectiveTable& table) {
  return lookup(table, Bytes{}).device.seconds();
}

/// The part of its time that grows with bytes.
double flow_time(const CollectiveTable& table, Bytes bytes) {
  return std::max(0.0, lookup(table, bytes).device.seconds() - latency_of(table));
}

std::vector<const CollectiveTable*> alike(std::span<const CollectiveTable> tables,
                                          const CollectiveTable& nearest) {
  std::vector<const CollectiveTable*> found;
  for (const CollectiveTable& table : tables) {
    if (table.collective == nearest.collective && table.backend == nearest.backend &&
        table.algorithm == nearest.algorithm && table.topology == nearest.topology &&
        table.workers >= 2 && !table.points.empty()) {
      found.push_back(&table);
    }
  }
  return found;
}

bool of_several_counts(const std::vector<const CollectiveTable*>& tables) {
  return std::ranges::any_of(tables, [&](const CollectiveTable* table) {
    return table->workers != tables.front()->workers;
  });
}

/// d, in seconds.
double latency_growth(const std::vector<const CollectiveTable*>& tables,
                      const CollectiveTable& nearest, const Growth& usual) {
  if (!of_several_counts(tables)) {
    return usual.latency * latency_of(nearest) /
           (1 + usual.latency * std::log2(nearest.workers / 2.0));
  }
  std::vector<Sample> samples;
  for (const CollectiveTable* table : tables) {
    samples.push_back({std::log2(table->workers), latency_of(*table)});
  }
  return rising_line(samples).slope;
}

/// g, up to a factor.
Line passes_growth(const std::vector<const CollectiveTable*>& tables, CollectiveKind kind,
                   const Growth& usual) {
  Line prior{.offset = 1 - usual.link, .slope = usual.link / link_passes(kind, 2)};
  if (!of_several_counts(tables)) return prior;
  Bytes largest = tables.front()->points.back().bytes;
  for (const CollectiveTable* table : tables) {
    largest = std::min(largest, table->points.back().bytes);
  }
  std::vector<Sample> samples;
  for (const CollectiveTable* table : tables) {
    samples.push_back({link_passes(kind, table->workers), flow_time(*table, largest)});
  }
  const Line line = rising_line(samples);
  // Where bytes cost nothing there is nothing to learn.
  return line.at(link_passes(kind, 2)) > 0 ? line : prior;
}

/// The largest number of workers that divides n, other than the nearest one; null: there is none.
const CollectiveTable* even_split(const std::vector<const CollectiveTable*>& tables,
                                  const CollectiveTable& nearest, int workers) {
  const CollectiveTable* best = nullptr;
  for (const CollectiveTable* table : tables) {
    if (workers % table->workers != 0 || workers % nearest.workers == 0) continue;
    if (best == nullptr || table->workers > best->workers) best = table;
  }
  return best;
}

}  // namespace

TableCost within_host(std::span<const CollectiveTable> tables, CollectiveKind kind,
                      const CollectiveTable& nearest, int workers, Bytes bytes) {
  LOCKSTEP_ASSERT(workers >= 2 && nearest.workers >= 2, "collectives have two workers or more");
  TableCost cost = lookup(nearest, bytes);  // also says what is wrong with the table
  const auto family = alike(tables, nearest);
  const Growth usual = usual_growth(kind);
  const double m = nearest.workers, n = workers;
  const Line passes = passes_growth(family, kind, usual);
  const auto grown_flow = [&](const CollectiveTable& table) {
    const double from = passes.at(link_passes(kind, table.workers));
    return flow_time(table, bytes) * passes.at(link_passes(kind, n)) / from;
  };
  const double latency =
      latency_of(nearest) + latency_growth(family, nearest, usual) * std::log2(n / m);
  double bytes_time = grown_flow(nearest);
  // Chunks that are cut unevenly cost more while latency is what counts.
  const CollectiveTable* even = even_split(family, nearest, workers);
  const double own_latency = latency_of(nearest);
  if (even != nullptr && own_latency > 0) {
    const double flows = std::min(1.0, flow_time(nearest, bytes) / own_latency);
    bytes_time = flows * bytes_time + (1 - flows) * grown_flow(*even);
  }
  const double seconds = std::max(0.0, latency) + bytes_time;
  cost.device = Time::from_seconds(seconds);
  cost.bandwidth_share = seconds > 0 ? bytes_time / seconds : 0;
  cost.other_workers = true;
  return cost;
}

}  // namespace lockstep
