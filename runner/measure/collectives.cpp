#include "runner/measure/collectives.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "runner/measure/clock.h"
#include "runner/measure/gather.h"
#include "runner/measure/statistics.h"

namespace lockstep::runner {

namespace {

constexpr int kWarmup = 2;

struct Samples {
  std::vector<double> device, host;  ///< ns
};

Samples time_one_size(CollectiveKind kind, Communicator& communicator, Device& device, Bytes bytes,
                      int rounds) {
  const auto options = at::TensorOptions().device(device.torch());
  const at::Tensor flat = at::zeros({bytes.count / 4}, options);
  std::vector<Moment> calls;
  communicator.take_transfers();
  for (int i = 0; i < kWarmup + rounds; ++i) {
    communicator.barrier();
    const Moment called = host_now();
    if (kind == CollectiveKind::all_reduce) {
      communicator.all_reduce(flat);
    } else {
      communicator.broadcast(flat, 0);
    }
    calls.push_back(host_now() - called);
    communicator.join();
    device.synchronize();
  }
  std::vector<Moment> moments;
  for (const Transfer& transfer : communicator.take_transfers()) {
    moments.push_back(transfer.launch);
    moments.push_back(transfer.done);
  }
  const auto all = gather(&communicator, moments, device.torch());
  Samples samples;
  for (std::size_t i = kWarmup; i < calls.size(); ++i) {
    Moment last_launch = 0, last_done = 0;
    for (const auto& rank : all) {
      last_launch = std::max(last_launch, rank[2 * i]);
      last_done = std::max(last_done, rank[2 * i + 1]);
    }
    samples.device.push_back(static_cast<double>(last_done - last_launch));
    samples.host.push_back(static_cast<double>(calls[i]));
  }
  return samples;
}

}  // namespace

CollectiveTable measure_collective(CollectiveKind kind, Communicator& communicator, Device& device,
                                   const std::vector<Bytes>& sizes, int rounds) {
  CollectiveTable table;
  table.collective = kind == CollectiveKind::all_reduce ? "all_reduce" : "broadcast";
  table.backend = communicator.backend();
  table.algorithm = kind == CollectiveKind::all_reduce && table.backend == "gloo" ? "ring" : "";
  table.workers = communicator.size();
  table.topology = "one host";
  for (const Bytes bytes : sizes) {
    const Samples samples = time_one_size(kind, communicator, device, bytes, rounds);
    const auto at = [&samples](double share) {
      return Time::nanoseconds(std::llround(quantile(samples.device, share)));
    };
    table.points.push_back({.bytes = bytes,
                            .p10 = at(0.1),
                            .p50 = at(0.5),
                            .p90 = at(0.9),
                            .host = Time::nanoseconds(std::llround(median(samples.host)))});
  }
  return table;
}

}  // namespace lockstep::runner
