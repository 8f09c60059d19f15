#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "sim/records/calibration.h"
#include "sim/records/measurement.h"
#include "sim/records/result.h"
#include "sim/records/run.h"
#include "sim/records/validation.h"

/// Records with every field drawn at random, within what the readers accept.
namespace lockstep::testing {

class RandomRecords {
 public:
  explicit RandomRecords(unsigned seed) : engine_(seed) {}

  int count(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  bool coin() { return count(0, 1) == 1; }
  Time time() { return Time::nanoseconds(count(0, 2'000'000'000)); }
  Bytes bytes() { return {std::int64_t{count(0, 2'000'000'000)} * count(0, 300)}; }
  double real() { return std::uniform_real_distribution<double>(0, 4)(engine_); }
  std::string text() {
    static const std::vector<std::string> kPieces{"conv",   "\"", "\\",  "\n", "\t", "é",
                                                  "layer1", ".",  "/",   "~",  " ",  "\x01",
                                                  "漢",     "{",  "][,", ":",  ""};
    std::string out;
    for (int i = count(0, 4); i > 0; --i) {
      out += kPieces[static_cast<std::size_t>(count(0, static_cast<int>(kPieces.size()) - 1))];
    }
    return out;
  }
  std::map<std::string, std::string> environment() {
    return {{"NCCL_ALGO", text()}, {"OMP_NUM_THREADS" + text(), "2"}};
  }
  std::vector<int> permutation(int n) {
    std::vector<int> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), engine_);
    return order;
  }
  template <class T, class F>
  std::vector<T> list(F make, int low = 0, int high = 3) {
    std::vector<T> out;
    for (int i = count(low, high); i > 0; --i) out.push_back(make());
    return out;
  }

  Origin origin() {
    Origin out;
    out.machine = {text(), text(), count(0, 64), list<GpuInfo>([&] {
                     return GpuInfo{text(), text(), count(0, 2000), real(), text()};
                   }),
                   text()};
    out.software = {text(), text(), text(), text(), text(), text()};
    out.environment = environment();
    out.command = text();
    out.date = text();
    return out;
  }
  SpeedIndex speed_index() { return {time(), time()}; }
  Cost cost() { return {time(), time(), count(0, 9)}; }
  Quantiles quantiles() { return {time(), time(), time(), time()}; }

  Profile profile() {
    Profile out;
    out.model = text();
    out.batch = count(1, 512);
    out.precision = text();
    out.device = text();
    out.graph = coin();
    out.beside = count(1, 4);
    const int layers = count(1, 5);
    const std::vector<int> backward = permutation(layers);
    for (int i = 0; i < layers; ++i) {
      Layer layer{text(), text(), cost(), cost(), backward[static_cast<std::size_t>(i)],
                  {},     {},     {}};
      layer.parameters = list<Parameter>([&] { return Parameter{text(), bytes(), 0}; });
      layer.buffers = bytes();
      layer.output = bytes();
      out.layers.push_back(layer);
    }
    int parameters = 0;
    for (const Layer& layer : out.layers) parameters += static_cast<int>(layer.parameters.size());
    const std::vector<int> ready = permutation(parameters);
    std::size_t next = 0;
    for (Layer& layer : out.layers) {
      for (Parameter& parameter : layer.parameters) parameter.ready_order = ready[next++];
    }
    out.optimizer = cost();
    out.step_overhead = cost();
    out.gradient_hook = cost();
    for (int rank = count(0, 4); rank > 0; --rank) out.host_of_rank.push_back(count(1, 100) / 16.0);
    out.input_load = time();
    out.input_copy = time();
    out.input_bytes = bytes();
    out.peak = bytes();
    out.step = time();
    out.spread_between_processes = real();
    out.spread_between_steps = real();
    return out;
  }

  std::vector<CollectivePoint> collective_points(int fewest) {
    std::int64_t size = 0;
    return list<CollectivePoint>(
        [&] {
          size += count(1, 1'000'000);
          return CollectivePoint{{size}, time(), time(), time(), time()};
        },
        fewest);
  }
  CollectiveTable collective_table() {
    CollectiveTable out{text(), text(), text(), count(1, 8), text(), {}, environment()};
    out.points = collective_points(1);
    out.held_out = collective_points(0);
    if (coin()) out.call_between = time();
    return out;
  }
  CopyTable copy_table() {
    return {text(),
            list<CopyPoint>([&] { return CopyPoint{bytes(), count(0, 100), time(), time()}; })};
  }

  Measurement measurement() {
    Measurement out;
    out.id = text();
    out.origin = origin();
    out.reference = time();
    out.launch_queue = count(0, 1024);
    out.profiles = list<ProfileSample>([&] {
      return ProfileSample{count(0, 3),
                           count(0, 3),
                           speed_index(),
                           profile(),
                           list<Time>([&] { return time(); }),
                           coin() ? time() : Time{}};
    });
    out.collectives = list<CollectiveSample>(
        [&] { return CollectiveSample{count(0, 3), speed_index(), collective_table()}; });
    out.copies = list<CopyTable>([&] { return copy_table(); });
    out.interference = list<InterferenceSample>(
        [&] { return InterferenceSample{text(), text(), count(0, 4), time(), time(), bytes()}; });
    out.cores = list<CoreSample>(
        [&] { return CoreSample{count(1, 4), count(1, 4), speed_index(), time()}; });
    return out;
  }

  Calibration calibration() {
    Calibration out;
    out.id = text();
    out.origin = origin();
    out.reference = time();
    out.drift_exponent = real() / 4;
    out.profiles = list<Profile>([&] { return profile(); });
    out.collectives = list<CollectiveTable>([&] { return collective_table(); });
    out.copies = list<CopyTable>([&] { return copy_table(); });
    out.interference = {
        1 + real(), 1 + real(), 1 + real(), time(), list<InterferenceFit::ByLayerKind>([&] {
          return InterferenceFit::ByLayerKind{text(), 1 + real(), 1 + real(), 1 + real(), time()};
        })};
    out.cores =
        list<CoreSlowdown>([&] { return CoreSlowdown{count(1, 4), count(1, 4), 1 + real()}; });
    out.noise = {real(), real(), real()};
    out.launch_queue = count(0, 1024);
    out.fits = list<Fit>([&] { return Fit{text(), real() - 2, count(0, 9)}; });
    return out;
  }

  StrategyOptions strategy() {
    StrategyOptions out{text(), bytes(), bytes(), coin(), coin(), time(), bytes(), coin()};
    out.accumulate = count(1, 8);
    out.no_sync = coin();
    out.find_unused_parameters = coin();
    if (coin()) out.compression = Compression::bf16;
    if (coin()) return out;
    out.kind = "parameter_server";
    out.servers = count(1, 9);
    out.staleness = coin() ? std::optional<std::int64_t>(count(0, 9)) : std::nullopt;
    out.server_rate = {count(0, 2'000'000'000)};
    return out;
  }

  std::optional<ServerStatistics> servers() {
    if (coin()) return std::nullopt;
    return ServerStatistics{
        real(), list<StalenessCount>([&] { return StalenessCount{count(0, 9), count(0, 999)}; }),
        list<ProcessTraffic>(
            [&] { return ProcessTraffic{text(), bytes(), bytes(), real(), real()}; })};
  }

  BucketTimes bucket() { return {bytes(), time(), time(), time()}; }

  Variability variability() {
    Variability out;
    out.kind = static_cast<Variability::Kind>(count(0, 4));
    out.sigma = real();
    out.shape = 1.5 + real();
    out.every = count(1, 9);
    out.period = time();
    out.high = real();
    out.low = real();
    out.aligned = coin();
    out.listed = coin();
    out.values = {1, 1 + real()};
    out.least = real();
    return varies(out) ? out : Variability{};
  }

  Run run() {
    Run out;
    out.id = text();
    out.origin = origin();
    out.calibration = text();
    out.model = text();
    out.batch_per_worker = count(1, 512);
    out.workers = count(1, 64);
    out.devices = list<RunDevices>([&] { return RunDevices{text(), count(1, 8)}; });
    out.strategy = strategy();
    out.precision = text();
    out.sync = coin() ? Sync::step : Sync::none;
    out.graph = coin();
    out.compute = coin() ? Compute::real : Compute::replay;
    out.slow_motion = coin() ? 1 : 4;
    out.hosts = count(1, 8);
    out.emulated = coin();
    out.link = {count(0, 2'000'000'000)};
    out.link_latency = time();
    out.slow_links =
        list<SlowLink>([&] { return SlowLink{count(0, 9), {count(0, 2'000'000'000)}}; });
    out.stragglers = list<InjectedStraggler>([&] {
      return InjectedStraggler{
          count(0, 7), 1 + real(),    time(),       static_cast<StepPart>(count(0, 3)),
          coin(),      variability(), variability()};
    });
    out.dataset = text();
    out.dataset_samples = count(0, 60000);
    out.loaders = count(0, 4);
    out.stable = coin();
    out.repeats = list<RunRepeat>([&] {
      return RunRepeat{count(0, 3),
                       count(0, 9),
                       count(0, 99),
                       quantiles(),
                       time(),
                       speed_index(),
                       coin() ? std::optional(real()) : std::nullopt,
                       list<Time>([&] { return time(); })};
    });
    out.ranks = list<RunRank>([&] {
      return RunRank{count(0, 3),
                     text(),
                     time(),
                     time(),
                     time(),
                     time(),
                     list<BucketTimes>([&] { return bucket(); }),
                     bytes()};
    });
    if (coin()) out.parity = Parity{real(), count(0, 3)};
    out.servers = servers();
    if (coin()) out.failure = Failure{count(0, 3), text(), count(0, 99)};
    return out;
  }

  Basis basis() { return static_cast<Basis>(count(0, 2)); }

  Prediction prediction() {
    Prediction out{text(), text(), text(), coin(), text(), coin() ? Sync::step : Sync::none,
                   coin(), {}};
    out.points = list<ResultPoint>([&] {
      ResultPoint point;
      point.workers = count(1, 64);
      point.batch_per_worker = count(1, 512);
      point.strategy = text();
      point.step = quantiles();
      point.uncertainty = {real(), real(), real()};
      point.basis = basis();
      point.throughput = real();
      point.speedup = real();
      point.efficiency = real();
      point.breakdown = {time(), time(), time(), time(), time(), time(), time()};
      point.host_busy = real();
      point.host_bound = coin();
      point.buckets = list<BucketTimes>([&] { return bucket(); });
      point.epoch_with_input = time();
      point.epoch_without_input = time();
      point.peak = bytes();
      point.servers = servers();
      return point;
    });
    return out;
  }

  ValidationPoint validation_point() {
    ValidationPoint point;
    point.run = text();
    point.model = text();
    point.strategy = text();
    point.batch_per_worker = count(1, 99);
    point.workers = count(1, 9);
    point.graph = coin();
    point.sync = Sync::none;
    point.compute = coin() ? Compute::real : Compute::replay;
    point.slow_motion = coin() ? 1 : 4;
    point.hosts = count(1, 8);
    point.link = {count(0, 2'000'000'000)};
    if (coin()) {
      point.bytes = Bytes{1} + bytes();
      point.batch_per_worker = count(0, 1);
    }
    point.predicted = time();
    point.measured = time();
    point.measured_normalised = time();
    point.repeat_spread = real();
    point.error = real() - 2;
    point.host_bound = coin();
    point.stable = coin();
    point.basis = basis();
    if (coin()) point.in_band = real();
    return point;
  }

  Validation validation() {
    return {text(), list<ValidationGroup>([&] {
              return ValidationGroup{text(),
                                     real(),
                                     real(),
                                     list<ValidationPoint>([&] { return validation_point(); }),
                                     coin() ? std::optional(real()) : std::nullopt,
                                     coin() ? std::optional(real()) : std::nullopt,
                                     coin() ? std::optional(real()) : std::nullopt,
                                     coin()};
            })};
  }

 private:
  std::mt19937 engine_;
};

}  // namespace lockstep::testing
