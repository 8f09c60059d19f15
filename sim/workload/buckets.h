#pragma once

#include <limits>
#include <span>
#include <vector>

#include "sim/core/units.h"

namespace lockstep {

/// A gradient on its way into a bucket. Only gradients of one `type` share a bucket (the element
/// size of a floating-point type, or any number that tells types and devices apart).
struct Gradient {
  Bytes bytes;
  int type = 0;
};

/// Indices of gradients that are reduced together, in the order in which they entered.
using Bucket = std::vector<int>;

/// The cap of DDP's first iteration, in which nothing is split.
inline constexpr Bytes kNoCap{std::numeric_limits<std::int64_t>::max()};

/// DDP's assignment (reducer.cpp, compute_bucket_assignment_by_size): per type, append a gradient,
/// then close the bucket when it holds at least the cap; each type goes through `caps` on its own
/// and stays at the last one. A bucket may exceed its cap; a gradient is never split.
/// `gradients` in the order in which they get ready, indices refer to it. Buckets come in the order
/// in which they are reduced: as they closed, then the unfinished one of each type by its first
/// gradient. `caps` must not be empty.
std::vector<Bucket> assign_buckets(std::span<const Gradient> gradients,
                                   std::span<const Bytes> caps);

/// What a bucket of these holds.
Bytes bytes_of(const Bucket& bucket, std::span<const Gradient> gradients);

/// nn.DataParallel sends parameters and gradients in chunks of this (torch/nn/parallel/comm.py).
inline constexpr Bytes kChunkLimit{10 * 1024 * 1024};

/// The chunks in which nn.DataParallel reduces gradients (torch/_utils.py, _take_tensors): per
/// type, a chunk is closed before the gradient that would take it beyond `limit`. One gradient may
/// exceed it alone. (Parameters go out by another rule, that of assign_buckets with this one cap:
/// torch/csrc/utils/tensor_flatten.cpp, take_tensors.) Chunks come as they closed, then the
/// unfinished one of each type by the type's first gradient.
std::vector<Bucket> take_chunks(std::span<const Gradient> gradients, Bytes limit);

}  // namespace lockstep
