#include "runner/measure/collectives.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "runner/measure/clock.h"
#include "runner/measure/gather.h"
#include "runner/measure/statistics.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

constexpr int kWarmupCalls = 2;
constexpr Moment kEnough = 1'500'000'000;  // ns of rounds at one size
/// Calls take turns through this much: after a backward most gradients have left the caches.
constexpr std::int64_t kRotation = 64 << 20;  // bytes
constexpr std::int64_t kMostTurns = 64;

struct Samples {
  std::vector<double> device, host;  ///< ns
};

/// One collective at one size, ready to be called again and again.
class Call {
 public:
  Call(CollectiveKind kind, Communicator& communicator, Device& device, Bytes bytes)
      : kind_(kind), communicator_(communicator), device_(device) {
    const auto options = at::TensorOptions().device(device.torch());
    const std::int64_t floats = bytes.count / 4, ranks = communicator.size();
    const std::int64_t turns = std::clamp<std::int64_t>(kRotation / bytes.count, 1, kMostTurns);
    arrays_ = at::zeros({turns, std::max(floats, kRotation / 4 / turns)}, options);
    arrays_ = arrays_.narrow(1, 0, floats);
    if (communicator.rank() != 0) return;
    if (kind == CollectiveKind::gather) all_ = at::zeros({floats * ranks}, options);
    if (kind == CollectiveKind::scatter) {
      parts_.assign(static_cast<std::size_t>(ranks), at::zeros({floats}, options));
    }
  }

  /// Returns the time of the call alone; the operation has been done then.
  Moment operator()() {
    at::Tensor flat = arrays_[turn_++ % arrays_.size(0)];
    communicator_.barrier();
    const Moment called = host_now();
    switch (kind_) {
      case CollectiveKind::all_reduce:
        communicator_.all_reduce(flat);
        break;
      case CollectiveKind::broadcast:
        communicator_.broadcast(flat, 0);
        break;
      case CollectiveKind::gather:
        communicator_.gather(flat, all_, 0);
        break;
      case CollectiveKind::scatter:
        communicator_.scatter(parts_, flat, 0);
        break;
      default:
        LOCKSTEP_ASSERT(false, "a collective that communicators have");
    }
    const Moment call = host_now() - called;
    communicator_.join();
    device_.synchronize();
    return call;
  }

 private:
  CollectiveKind kind_;
  Communicator& communicator_;
  Device& device_;
  at::Tensor arrays_;  ///< one in each row
  std::int64_t turn_ = 0;
  at::Tensor all_;
  std::vector<at::Tensor> parts_;
};

/// From the last launch to the last end, round by round.
std::vector<double> spans(Communicator& communicator, Device& device,
                          const std::vector<Moment>& offsets) {
  std::vector<Moment> moments;
  for (const Transfer& transfer : communicator.take_transfers()) {
    moments.push_back(transfer.launch);
    moments.push_back(transfer.done);
  }
  const auto all = gather(&communicator, moments, device.torch());
  std::vector<double> result;
  for (std::size_t i = 0; i < moments.size(); i += 2) {
    Moment last_launch = 0, last_done = 0;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      last_launch = std::max(last_launch, all[rank][i] + offsets[rank]);
      last_done = std::max(last_done, all[rank][i + 1] + offsets[rank]);
    }
    result.push_back(static_cast<double>(last_done - last_launch));
  }
  return result;
}

Samples time_one_size(Call& call, Communicator& communicator, Device& device, int most,
                      const std::vector<Moment>& offsets) {
  communicator.take_transfers();
  Moment once = 0;
  for (int i = 0; i < kWarmupCalls; ++i) {
    const Moment begin = host_now();
    call();
    once = host_now() - begin;
  }
  communicator.take_transfers();
  const auto fitting = std::clamp<Moment>(kEnough / std::max<Moment>(once, 1), 2, most);
  const Moment rounds = agree(&communicator, std::min<Moment>(fitting, most), device.torch());
  Samples samples;
  for (Moment i = 0; i < rounds; ++i) samples.host.push_back(static_cast<double>(call()));
  samples.device = spans(communicator, device, offsets);
  return samples;
}

}  // namespace

CollectiveTable measure_collective(CollectiveKind kind, Communicator& communicator, Device& device,
                                   const CollectiveSizes& sizes,
                                   const std::vector<Moment>& offsets) {
  CollectiveTable table;
  table.collective = to_string(kind);
  table.backend = communicator.backend();
  table.algorithm = kind == CollectiveKind::all_reduce && table.backend == "gloo" ? "ring" : "";
  table.workers = communicator.size();
  table.topology = kOneHost;
  Bytes before;
  Moment took = 0;
  for (const Bytes bytes : sizes.bytes) {
    // By bandwidth; latency only makes it less.
    const Moment expected =
        before > Bytes{} ? multiply_divide(took, bytes.count, before.count) : Moment{0};
    if (expected > sizes.longest) break;
    Call call(kind, communicator, device, bytes);
    const Samples samples = time_one_size(call, communicator, device, sizes.rounds, offsets);
    const auto at = [&samples](double share) {
      return Time::nanoseconds(std::llround(quantile(samples.device, share)));
    };
    table.points.push_back({.bytes = bytes,
                            .p10 = at(0.1),
                            .p50 = at(0.5),
                            .p90 = at(0.9),
                            .host = Time::nanoseconds(std::llround(median(samples.host)))});
    before = bytes;
    took = agree(&communicator, at(0.5).ns(), device.torch());
  }
  return table;
}

}  // namespace lockstep::runner
