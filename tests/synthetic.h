#pragma once

// Small calibrations with round numbers, so that tests can be worked out by hand. Nothing here was
// measured.

#include <string>
#include <vector>

#include "sim/records/calibration.h"

namespace lockstep {

inline Time us(std::int64_t count) {
  return Time::microseconds(count);
}

inline Cost cost(std::int64_t host_us, std::int64_t device_us, int launches = 1) {
  return {.host = us(host_us), .device = us(device_us), .launches = launches};
}

/// Layers in forward order, backward in reverse; each has one parameter of `parameter` bytes.
inline Layer layer(const std::string& name, const std::string& kind, Cost forward, Cost backward,
                   Bytes parameter, Bytes buffers = {}) {
  Layer result;
  result.name = name;
  result.kind = kind;
  result.forward = forward;
  result.backward = backward;
  if (parameter > Bytes{}) result.parameters.push_back({name + ".weight", parameter, 0});
  result.buffers = buffers;
  return result;
}

inline void number_backward(Profile& profile) {
  int order = 0;
  int ready = 0;
  for (auto each = profile.layers.rbegin(); each != profile.layers.rend(); ++each) {
    each->backward_order = order++;
    for (Parameter& parameter : each->parameters) parameter.ready_order = ready++;
  }
}

/// Two layers of 4 MiB each: forward 100 us, backward 200 us a layer at batch 32, 10 us of the host
/// to launch anything, 2 us a gradient, optimizer 50 us.
inline Profile two_layers() {
  Profile profile;
  profile.model = "two_layers";
  profile.batch = 32;
  profile.device = "synthetic";
  profile.layers = {layer("a", "conv", cost(10, 100), cost(10, 200), Bytes{4 << 20}),
                    layer("b", "linear", cost(10, 100), cost(10, 200), Bytes{4 << 20})};
  number_backward(profile);
  profile.optimizer = cost(10, 50);
  profile.gradient_hook = cost(2, 0, 0);
  return profile;
}

/// The same layers with normalisation between, whose buffers DDP broadcasts.
inline Profile with_norm() {
  Profile profile = two_layers();
  profile.model = "with_norm";
  profile.layers.insert(profile.layers.begin() + 1,
                        layer("n", "norm", cost(10, 20), cost(10, 40), Bytes{1024}, Bytes{1024}));
  number_backward(profile);
  return profile;
}

inline Profile at_batch(Profile profile, int batch) {
  for (Layer& each : profile.layers) {
    each.forward.device = Time::picoseconds(each.forward.device.ps() * batch / profile.batch);
    each.backward.device = Time::picoseconds(each.backward.device.ps() * batch / profile.batch);
  }
  profile.batch = batch;
  return profile;
}

/// `latency` and one byte in 100 ps (10 GB/s), for all numbers of workers alike.
inline CollectiveTable collective_table(const std::string& collective, int workers,
                                        std::int64_t latency_us) {
  CollectiveTable table;
  table.collective = collective;
  table.backend = "synthetic";
  table.workers = workers;
  table.topology = "one host";
  for (std::int64_t bytes = 1024; bytes <= 64 << 20; bytes *= 4) {
    const Time time = us(latency_us) + Time::picoseconds(bytes * 100);
    table.points.push_back({Bytes{bytes}, time, time, time, us(10)});
  }
  return table;
}

/// Four GPUs whose collectives have the same table for 2 to 4.
inline Calibration gpu_calibration() {
  Calibration calibration;
  calibration.id = "synthetic-gpu";
  calibration.origin.machine.host = "synthetic machine with 4 GPUs";
  calibration.origin.machine.cores = 16;
  calibration.origin.machine.gpus.resize(4, {.name = "synthetic GPU", .uuid = {}, .throttle = {}});
  calibration.origin.date = "2026-01-01T00:00:00Z";
  calibration.reference = us(1000);
  for (const Profile& profile : {two_layers(), with_norm()}) {
    for (int batch : {16, 32, 64}) calibration.profiles.push_back(at_batch(profile, batch));
  }
  for (int workers = 2; workers <= 4; ++workers) {
    calibration.collectives.push_back(collective_table("all_reduce", workers, 20));
    calibration.collectives.push_back(collective_table("broadcast", workers, 15));
  }
  calibration.copies = {
      {"bucket_in", {{Bytes{1 << 20}, 1, us(10), us(5)}, {Bytes{64 << 20}, 1, us(640), us(5)}}}};
  calibration.interference = {.waiting = 1.0,
                              .transferring = 1.25,
                              .collective_beside_compute = 1.0,
                              .by_layer_kind = {{"conv", 1.0, 1.1}}};
  calibration.noise = {.process = 0.01, .step = 0.02, .task = 0};
  calibration.launch_queue = 1024;
  calibration.fits = {{"profile of two_layers at batch 32", 0.01, 6},
                      {"profile of with_norm at batch 32", 0.015, 6},
                      {"collective all_reduce over synthetic, 2 workers", 0.02, 20}};
  return calibration;
}

/// Two cores, one thread a worker: no host times, a slow network thread.
inline Calibration cpu_calibration() {
  Calibration calibration = gpu_calibration();
  calibration.id = "synthetic-cpu";
  calibration.origin.machine.host = "synthetic machine with 2 cores";
  calibration.origin.machine.cores = 2;
  calibration.origin.machine.gpus.clear();
  calibration.origin.environment["OMP_NUM_THREADS"] = "1";
  for (Profile& profile : calibration.profiles) {
    for (Layer& each : profile.layers) {
      each.forward.host = each.backward.host = Time{};
      each.forward.launches = each.backward.launches = 0;
    }
    profile.optimizer = cost(0, 50, 0);
    profile.gradient_hook = cost(0, 1, 0);
  }
  calibration.cores = {{1, 1, 1.0}, {2, 1, 1.05}};
  calibration.launch_queue = 0;
  return calibration;
}

}  // namespace lockstep
