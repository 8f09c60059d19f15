#include "sim/simulate_servers.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "sim/analysis/breakdown.h"
#include "sim/analysis/statistics.h"
#include "sim/analysis/uncertainty.h"
#include "sim/core/error.h"
#include "sim/scenario/server_point.h"
#include "sim/workload/strategy.h"

namespace lockstep {
namespace {

constexpr double kHostIsBound = 0.9;
/// Beyond it only the traffic of servers is told.
constexpr std::size_t kMostProcesses = 64;

class ServerSteps {
 public:
  ServerSteps(const Scenario& scenario, const Calibration& calibration, const Point& point,
              const EngineOptions& options)
      : scenario_(scenario),
        calibration_(calibration),
        point_(point),
        options_(options),
        graph_(compile_computing(point.workload)),
        servers_(make_server_point(scenario, calibration, point)) {
    options_.network = nullptr;
    servers_.system.iterations = static_cast<std::uint32_t>(scenario.iterations);
    servers_.system.first_draw = kLeftOut;
    run_all();
    // In the first iterations all start at once.
    first_ = std::min<std::size_t>(2, servers_.system.iterations - 1);
  }

  ResultPoint result() const;
  Timeline timeline() const;

 private:
  /// Of the engine: in the first iteration nothing has been loaded ahead.
  static constexpr std::uint32_t kLeftOut = 1;

  void run_all();
  void compute(std::uint32_t iterations);
  bool computing_varies() const;

  /// Gradients leave a worker when it has computed them, so each step is waited for. What delays it
  /// is the system's: pauses by the clock go by the time at which it begins.
  static TaskGraph compile_computing(Workload workload) {
    workload.sync = Sync::step;
    workload.delays.clear();
    return compile(workload, Phase::steady);
  }

  std::size_t workers() const { return run_.iterations.size(); }
  std::vector<Time> steps_of(std::size_t worker) const {
    std::vector<Time> steps;
    const std::vector<ServerIteration>& all = run_.iterations[worker];
    for (std::size_t i = first_; i < all.size(); ++i) steps.push_back(all[i].end - all[i].start);
    return steps;
  }
  Time mean_of(std::size_t worker) const { return quantiles(steps_of(worker)).mean; }
  std::size_t slowest() const {
    std::size_t slowest = 0;
    for (std::size_t worker = 1; worker < workers(); ++worker) {
      if (mean_of(worker) > mean_of(slowest)) slowest = worker;
    }
    return slowest;
  }
  StepParts parts_of(std::size_t worker) const;
  std::vector<BucketTimes> shards_of(std::size_t worker) const;
  double throughput() const;
  std::vector<StalenessCount> staleness() const;
  std::vector<ProcessTraffic> traffic() const;
  std::pair<std::uint32_t, std::uint32_t> links_of(std::uint32_t process) const;
  double busy(std::uint32_t link) const;
  void add_worker(std::size_t worker, std::size_t iteration, Timeline& timeline) const;

  const Scenario& scenario_;
  const Calibration& calibration_;
  const Point& point_;
  EngineOptions options_;
  TaskGraph graph_;
  ServerPoint servers_;
  ServerRun run_;
  std::size_t first_ = 0;
};

/// Draws of `iterations`, for every worker.
void ServerSteps::compute(std::uint32_t iterations) {
  options_.iterations = iterations + kLeftOut;
  servers_.system.compute.clear();
  for (const std::vector<Time>& ends : lockstep::run(graph_, options_).step_end) {
    std::vector<Time>& times = servers_.system.compute.emplace_back();
    for (std::size_t i = kLeftOut; i < ends.size(); ++i) times.push_back(ends[i] - ends[i - 1]);
  }
}

bool ServerSteps::computing_varies() const {
  return std::ranges::any_of(servers_.system.compute, [](const std::vector<Time>& times) {
    return std::ranges::adjacent_find(times, std::ranges::not_equal_to()) != times.end();
  });
}

/// Who is faster does more iterations than were asked for, and draws for each of them; only one
/// that does many times as many begins again with the first draws.
void ServerSteps::run_all() {
  constexpr std::uint32_t kMost = 4;
  const std::uint32_t asked = servers_.system.iterations;
  for (std::uint32_t drawn = asked;;) {
    compute(drawn);
    run_ = lockstep::run(servers_.system);
    std::size_t longest = 0;
    for (const auto& iterations : run_.iterations) {
      longest = std::max(longest, iterations.size() + 1);  // the last one is not finished
    }
    if (longest <= drawn || drawn == kMost * asked || !computing_varies()) return;
    const auto wanted = static_cast<std::uint32_t>(longest + longest / 8);
    drawn = std::min(kMost * asked, wanted);
  }
}

/// The engine says how computing is made up; what it takes longer beside others is computing, too,
/// and so is, as on the compute lane of other strategies, the time that it is delayed.
StepParts ServerSteps::parts_of(std::size_t worker) const {
  EngineOptions options = options_;
  options.record_spans = true;
  options.spans_of = static_cast<std::uint32_t>(worker);
  const std::vector<StepParts> computing =
      break_down(graph_, lockstep::run(graph_, options), static_cast<std::uint32_t>(worker));
  std::vector<StepParts> steps;
  const std::vector<ServerIteration>& all = run_.iterations[worker];
  for (std::size_t i = first_; i < all.size(); ++i) {
    const ServerIteration& iteration = all[i];
    StepParts step = computing[1 + i % (computing.size() - 1)];
    Breakdown& parts = step.breakdown;
    parts.compute += (iteration.packed - iteration.start) - parts.step();
    parts.compute += iteration.end - iteration.received;
    parts.exposed += iteration.transferring;
    parts.waiting += (iteration.received - iteration.packed) - iteration.transferring;
    steps.push_back(step);
  }
  return mean_parts(steps, 0);
}

/// Each server's part of a step, from the step's beginning, in the mean.
std::vector<BucketTimes> ServerSteps::shards_of(std::size_t worker) const {
  std::vector<BucketTimes> shards(servers_.system.server_count());
  for (std::size_t server = 0; server < shards.size(); ++server) {
    shards[server].bytes = servers_.system.shards[server];
  }
  for (const ServerUpdate& update : run_.updates) {
    if (update.worker != worker || update.iteration < first_) continue;
    const ServerIteration& iteration = run_.iterations[worker][update.iteration];
    BucketTimes& shard = shards[update.server];
    shard.ready += iteration.computed - iteration.start;
    shard.launch += update.sent - iteration.start;
    shard.done += update.received - iteration.start;
  }
  const auto count = static_cast<std::int64_t>(run_.iterations[worker].size() - first_);
  for (BucketTimes& shard : shards) {
    for (Time* time : {&shard.ready, &shard.launch, &shard.done}) {
      *time = Time::picoseconds(multiply_divide(time->ps(), 1, count));
    }
  }
  return shards;
}

double ServerSteps::throughput() const {
  double sum = 0;
  for (std::size_t worker = 0; worker < workers(); ++worker) {
    const int batch = batch_of(scenario_, point_.workers, static_cast<int>(worker));
    sum += batch / mean_of(worker).seconds();
  }
  return sum;
}

std::vector<StalenessCount> ServerSteps::staleness() const {
  std::map<std::int64_t, std::int64_t> counts;
  for (const ServerUpdate& update : run_.updates) {
    if (update.iteration >= first_) ++counts[update.staleness()];
  }
  std::vector<StalenessCount> result;
  for (const auto& [staleness, updates] : counts) result.push_back({staleness, updates});
  return result;
}

/// Out and in: where a process shares its host's link with others, that link. Routes lead from a
/// device over its host, or over two hosts and a switch.
std::pair<std::uint32_t, std::uint32_t> ServerSteps::links_of(std::uint32_t process) const {
  const std::uint32_t peer = process < workers() ? static_cast<std::uint32_t>(workers()) : 0;
  const std::vector<std::uint32_t> out = servers_.network->route(process, peer).links;
  const std::vector<std::uint32_t> in = servers_.network->route(peer, process).links;
  return {out[out.size() / 2 - 1], in[in.size() / 2]};
}

double ServerSteps::busy(std::uint32_t link) const {
  const double rate = static_cast<double>(servers_.network->links()[link].bytes_per_second);
  return static_cast<double>(run_.carried[link].count) / rate / run_.end.seconds();
}

std::vector<ProcessTraffic> ServerSteps::traffic() const {
  const std::size_t processes = workers() + servers_.system.server_count();
  std::vector<std::int64_t> bytes(processes, 0);  // each way
  std::int64_t steps = 0;
  for (const auto& iterations : run_.iterations) steps += std::ssize(iterations);
  for (const ServerUpdate& update : run_.updates) {
    const std::int64_t shard = servers_.system.shards[update.server].count;
    bytes[update.worker] += shard;
    bytes[workers() + update.server] += shard;
  }
  std::vector<ProcessTraffic> traffic;
  for (std::size_t i = processes > kMostProcesses ? workers() : 0; i < processes; ++i) {
    const bool worker = i < workers();
    const auto [out, in] = links_of(static_cast<std::uint32_t>(i));
    const Bytes mine{worker ? multiply_divide(bytes[i], 1, std::ssize(run_.iterations[i]))
                            : multiply_divide(bytes[i], std::ssize(run_.iterations), steps)};
    traffic.push_back(
        {.process = worker ? fmt::format("worker {}", i) : fmt::format("server {}", i - workers()),
         .out = mine,
         .in = mine,
         .out_busy = busy(out),
         .in_busy = busy(in)});
  }
  return traffic;
}

ResultPoint ServerSteps::result() const {
  std::vector<Time> steps;
  for (std::size_t worker = 0; worker < workers(); ++worker) {
    const std::vector<Time> mine = steps_of(worker);
    steps.insert(steps.end(), mine.begin(), mine.end());
  }
  const std::size_t worker = slowest();
  const StepParts parts = parts_of(worker);
  ResultPoint result;
  result.workers = point_.workers;
  result.batch_per_worker = batch_of(scenario_, point_.workers, 0);
  result.strategy = point_.workload.strategy.kind;
  result.step = quantiles(steps);
  result.basis = std::max(point_.basis, servers_.basis);
  result.throughput = throughput();
  result.breakdown = parts.breakdown;
  const Time step = parts.breakdown.step();
  result.host_busy = step > Time{} ? parts.host_busy.seconds() / step.seconds() : 0;
  result.host_bound = result.host_busy >= kHostIsBound;
  result.buckets = shards_of(worker);
  result.uncertainty = uncertainty(calibration_, point_.workload.profiles.front(), parts.breakdown);
  result.uncertainty.drawn = relative_spread(steps);
  result.servers = ServerStatistics{
      .throughput = result.throughput, .staleness = staleness(), .traffic = traffic()};
  return result;
}

void ServerSteps::add_worker(std::size_t worker, std::size_t iteration, Timeline& timeline) const {
  const ServerIteration& ran = run_.iterations[worker][iteration];
  const auto add = [&](Lane lane, TaskKind kind, const char* name, Time start, Time end) {
    if (end <= start) return;
    timeline.push_back({.worker = static_cast<std::uint32_t>(worker),
                        .lane = lane,
                        .kind = kind,
                        .iteration = static_cast<std::uint32_t>(iteration),
                        .name = name,
                        .start = start,
                        .end = end});
  };
  add(Lane::compute, TaskKind::mark, "delay", ran.start, ran.begun);
  add(Lane::compute, TaskKind::forward, "forward and backward", ran.begun, ran.computed);
  add(Lane::compute, TaskKind::bucket_copy, "pack gradients", ran.computed, ran.packed);
  add(Lane::communication, TaskKind::collective, "push and pull", ran.packed, ran.received);
  add(Lane::compute, TaskKind::bucket_copy, "unpack parameters", ran.received, ran.end);
}

Timeline ServerSteps::timeline() const {
  constexpr std::size_t kShown = 3;
  Timeline timeline;
  for (std::size_t worker = 0; worker < workers(); ++worker) {
    add_worker(worker, std::min(kShown, run_.iterations[worker].size() - 1), timeline);
  }
  for (const ServerUpdate& update : run_.updates) {
    const std::size_t last = run_.iterations[update.worker].size() - 1;
    if (update.iteration != std::min(kShown, last) || update.applied <= update.served) continue;
    timeline.push_back({.worker = static_cast<std::uint32_t>(workers()) + update.server,
                        .lane = Lane::compute,
                        .kind = TaskKind::optimizer,
                        .iteration = update.iteration,
                        .name = fmt::format("update of worker {}", update.worker),
                        .start = update.served,
                        .end = update.applied});
  }
  const Time origin = std::ranges::min_element(timeline, {}, &Span::start)->start;
  for (Span& span : timeline) {
    span.start -= origin;
    span.end -= origin;
  }
  return timeline;
}

}  // namespace

ResultPoint simulate_servers(const Scenario& scenario, const Calibration& calibration,
                             const Point& point, const EngineOptions& options) {
  return ServerSteps(scenario, calibration, point, options).result();
}

Timeline server_timeline(const Scenario& scenario, const Calibration& calibration,
                         const Point& point, const EngineOptions& options) {
  return ServerSteps(scenario, calibration, point, options).timeline();
}

}  // namespace lockstep
