#pragma once

#include <span>
#include <vector>

#include "sim/core/units.h"

namespace lockstep {

/// Which server of a parameter server holds which parameters; the runner's rule and the
/// simulator's. Whole tensors, the largest first, each to the server that holds least so far, of
/// several the first: the greedy rule by which classic parameter servers balance their load (and
/// tf.contrib.training.GreedyLoadBalancingStrategy). A tensor is never split.
/// Returns indices of `parameters` by server, ascending. Throws InputError unless there is a
/// parameter for each server.
std::vector<std::vector<int>> shard_parameters(std::span<const Bytes> parameters, int servers);

/// What each server holds.
std::vector<Bytes> shard_bytes(std::span<const Bytes> parameters,
                               std::span<const std::vector<int>> shards);

}  // namespace lockstep
