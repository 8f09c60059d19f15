#pragma once

#include <functional>
#include <string>

#include "runner/communicators/communicator.h"
#include "runner/communicators/point_to_point.h"
#include "runner/measure/device.h"
#include "runner/strategies/replica_devices.h"
#include "sim/records/run.h"

namespace lockstep::runner {

inline constexpr double kParityBound = 1e-4;

/// How far a strategy may train from one device. Compressed, each rank's gradient and each sum of
/// several is rounded to the 8 bits of bf16: by 2^-9 of itself at most.
double parity_bound(const StrategyOptions& options, int workers);

/// Trains three steps with the strategy on all ranks, and the same three steps on this device
/// alone: it runs the shards of all ranks one after another, each with its own BatchNorm
/// statistics, adds their gradients weighted by their share, and keeps shard 0's buffers. Every
/// step starts from the same parameters on both sides, since training amplifies the rounding of a
/// sum's order from step to step. Shards are of `batch` samples, or as options.split says. Returns
/// how far parameters and buffers are apart after a step, relative to how far it moved them: the
/// largest over steps and ranks. In fp32 and without dropout, whatever the runs have. All ranks
/// call. `beat` is called now and then: a large network takes a while.
Parity check_parity(
    const std::string& model, const StrategyOptions& options, int batch, std::uint64_t seed,
    Communicator& communicator, Device& device, const std::function<void()>& beat = [] {},
    PointToPoint* servers = nullptr);

/// How far `device` and cores, each alone, train the same steps as check_parity's apart, measured
/// as there: in fp32 their libraries add in another order in every layer, and where a ReLU or a
/// maximum is within that rounding of a tie, a gradient goes another way. Workers on both can be no
/// closer to either. options.split says the shards. Rank 0 trains; all ranks call, and get the
/// same.
double arithmetic_apart(const std::string& model, const StrategyOptions& options,
                        std::uint64_t seed, Communicator& communicator, Device& device,
                        const std::function<void()>& beat);

/// For parameter_server where it is not synchronous: trains a few steps on all ranks, logs in which
/// order the servers (ranks behind the workers' of `group`) applied which update and which version
/// each worker computed on, and trains the same in that order alone, with gradients of this device
/// and updates on cores. Returns how far this rank's parameters are from those of that worker,
/// relative to how far they moved: zero where all is the same to the bit. All ranks call. RunError
/// where the log contradicts itself.
Parity check_update_order(
    const std::string& model, const StrategyOptions& options, int batch, std::uint64_t seed,
    Communicator& communicator, Device& device, PointToPoint& group,
    const std::function<void()>& beat = [] {});

/// The same as check_parity for data_parallel, whose devices are all this process's: `samples` (>=
/// one for each device) are shared out among them, and shares weigh by their samples.
Parity check_data_parallel(
    const std::string& model, int samples, std::uint64_t seed, ReplicaDevices& devices,
    Device& device, const std::function<void()>& beat = [] {});

}  // namespace lockstep::runner
