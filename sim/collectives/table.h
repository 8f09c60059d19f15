#pragma once

#include <span>

#include "sim/core/task_graph.h"
#include "sim/core/time.h"
#include "sim/core/units.h"
#include "sim/records/collective_table.h"

namespace lockstep {

/// Costs read off measured tables. Between two sizes: a straight line through both in bytes, which
/// is exact where time is latency + bytes / bandwidth. (Straight in log over log lies above such a
/// law: 2 to 6 % at twice the size, on the shipped tables.) Beyond the ends: latency + bytes /
/// bandwidth, through the two points at that end. At a measured size: that measurement, exactly.
struct TableCost {
  Time device;   ///< median, from the last launch to the end
  Time host;     ///< of the call, in a row of such calls
  Time between;  ///< what the call takes besides, behind other launches
  /// Share of `device` that grows with bytes, in [0, 1]: the slope of log(time) over log(bytes).
  /// The rest is latency.
  double bandwidth_share = 0;
  bool beyond_sizes = false;   ///< smaller or larger than anything measured
  bool other_workers = false;  ///< measured with another number of workers
};

/// Within one table, for the number of workers it was measured with. Throws InputError where the
/// table is empty or not ascending in bytes.
TableCost lookup(const CollectiveTable& table, Bytes bytes);

/// For `workers` (>= 2) from the table of this collective with the nearest number of workers (by
/// ratio; of two as near, the larger). Tables of NCCL on one host: within_host(). Others from m to
/// n workers, by the ring's algebra:
///   all-reduce   per-step time of a message depends on its size alone, so
///                t(n, S) = (n-1)/(m-1) t(m, S m/n): the same chunk, more or fewer steps
///   broadcast    latency per hop, bandwidth once: t = latency (n-1)/(m-1) + bandwidth part
///   gather, scatter, reduce   all at once through the root's port: t = latency + bandwidth part
///                             times (n-1)/(m-1)
/// Throws InputError where no table of that collective is there.
TableCost estimate(std::span<const CollectiveTable> tables, CollectiveKind kind, int workers,
                   Bytes bytes);

/// One message of a collective as the table's measurement of `bytes` implies: the latency that is
/// left where there are no bytes, and the rate at which its bytes flow besides. (All-reduce: along
/// a ring; broadcast: down a chain; the others: with the root; to other numbers of workers by their
/// algebra, whoever measured.) For collectives run step by step.
StepCost effective_step(std::span<const CollectiveTable> tables, CollectiveKind kind, int workers,
                        Bytes bytes);

}  // namespace lockstep
