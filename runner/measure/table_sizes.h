#pragma once

#include <functional>
#include <vector>

#include "sim/core/time.h"
#include "sim/core/units.h"
#include "sim/records/collective_table.h"

namespace lockstep::runner {

/// least, factor times that, ... as far as `most`, and `most`. least > 0, factor >= 2.
std::vector<Bytes> growing_sizes(Bytes least, Bytes most, int factor);

/// growing_sizes by two, from 4 KiB on each times the square root of two (but for `most`): at sizes
/// between powers of two NCCL takes 4 to 8 % longer below 100 KiB than at them (seen on two H200),
/// and so large a gradient or bucket is seldom a power of two.
std::vector<Bytes> gradient_sizes(Bytes least, Bytes most);

/// One size between every `every`th pair of neighbours, by turns a fifth and seven tenths of the
/// way, so that none is one that refine() adds. `calibrated` ascends.
std::vector<Bytes> held_out_sizes(const std::vector<Bytes>& calibrated, int every = 1);

/// What a table is made of.
struct TableSizes {
  std::vector<Bytes> calibrated;     ///< ascending, at least one
  std::vector<Bytes> held_out = {};  ///< measured, and never read off
  bool refined = false;              ///< more of them where refine() wants some
};

/// A rank's own point, and the median on which all ranks agree.
struct AgreedPoint {
  CollectivePoint point;
  Time agreed;
};

/// Adds points where a straight line between neighbours is wrong, as where a backend changes its
/// protocol: half way between two that differ by more than 15 %; where that one lies more than 3 %
/// off their line, half way in both halves again, down to a sixty-fourth of the way. What is
/// measured depends on agreed times alone, so that all ranks measure the same sizes. `points`
/// ascend, and do so afterwards.
void refine(std::vector<AgreedPoint>& points, const std::function<AgreedPoint(Bytes)>& measure);

}  // namespace lockstep::runner
