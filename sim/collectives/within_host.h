#pragma once

#include <span>

#include "sim/collectives/table.h"
#include "sim/core/task_graph.h"
#include "sim/core/units.h"
#include "sim/records/collective_table.h"

namespace lockstep {

/// A collective of NCCL among `workers` GPUs of one host, where that number was not measured. The
/// ring's algebra does not hold there: its bus bandwidth rises with n, and it takes 1.3 to 1.5
/// times as long on 4 GPUs as on 2, not 1.5 to 3 times. From `nearest`, m workers:
///   t(n, S) = a(n) + (t(m, S) - a(m)) g(n) / g(m)
///   a(n) = a(m) + d log2(n/m)   latency, what the table leaves where there are no bytes
///   g(n) = p + q f(n)           every byte passes through each GPU once, whatever n is (p), and
///                               f(n) = 2(n-1)/n times over its link (q), Patarasuk & Yuan 2009;
///                               gather and scatter: n - 1 times through the root's
/// While what bytes take is less than a(m), they are taken in part from the largest measured number
/// that divides n, where m does not: chunks that are cut unevenly cost more (on 4 x H100 4 to 256
/// KiB take 1 us longer on three GPUs than two and four let expect; on two, sizes that are no power
/// of two 4 to 8 % longer).
///
/// d, p and q by least squares from all numbers of workers that `tables` hold of this kind, none of
/// them negative: a(n) at no bytes, p and q at the largest size that all of them have. From a
/// single n they are what was seen on 4 x H100 (calibration/data/h100x4-2026-11-28, NCCL 2.28.9,
/// NVLS off; see within_host.cpp).
///
/// `nearest` is one of `tables`, and not of `workers` workers. Host times are its own.
TableCost within_host(std::span<const CollectiveTable> tables, CollectiveKind kind,
                      const CollectiveTable& nearest, int workers, Bytes bytes);

}  // namespace lockstep
