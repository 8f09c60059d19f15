#include "sim/workload/server_system.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <utility>

#include "sim/core/error.h"
#include "sim/core/event_queue.h"
#include "sim/platform/sharing.h"
#include "sim/workload/server_delays.h"

namespace lockstep {
namespace {

constexpr std::int64_t kFactorOne = std::int64_t{1} << 32;
/// Iterations of all workers, in multiples of what was asked for, after which one that has done
/// next to nothing is taken to starve.
constexpr std::uint64_t kPatience = 20;

/// Everything of one instant happens first; then, before the clock moves, what shares cores or
/// links is re-timed once. As in the engine, ends are kept rather than remaining work.
class ServerSimulation {
 public:
  explicit ServerSimulation(const ServerSystem& system);
  ServerRun run();

 private:
  enum class Stage : std::uint8_t { pause, compute, pack, exchange, unpack };
  /// What a process does, one thing at a time.
  struct Work {
    std::int64_t end = 0;
    Factor slowdown;  ///< applied to it
    std::uint32_t generation = 0;
    bool running = false, scheduled = false;
  };
  struct Worker {
    Work work;
    Stage stage = Stage::compute;
    std::uint32_t iteration = 0;
    std::uint32_t missing = 0;  ///< answers
    std::int64_t flowing_since = 0;
  };
  struct Job {
    bool update = true;  ///< else an answer
    std::uint32_t worker = 0;
  };
  struct Server {
    Work work;
    Job job;  ///< under way
    std::deque<Job> queue;
    std::int64_t version = 0;            ///< updates applied
    std::vector<std::int64_t> clock;     ///< by worker, gradients applied
    std::vector<std::uint32_t> waiting;  ///< workers without an answer, as they arrived
    std::uint32_t added = 0;             ///< gradients of this synchronous step
  };
  struct Flow {
    Route route;
    std::int64_t end = 0;
    Rate rate = 0;  ///< zero: it does not flow yet
    std::uint32_t generation = 0;
  };

  bool synchronous() const { return system_.staleness == 0; }
  bool finished() const { return unfinished_ == 0 || done_ >= most_; }
  std::uint32_t way(std::uint32_t worker, std::uint32_t server, bool push) const {
    return (worker * system_.server_count() + server) * 2 + (push ? 0 : 1);
  }
  std::uint32_t worker_of(std::uint32_t flow) const { return flow / 2 / system_.server_count(); }
  std::uint32_t server_of(std::uint32_t flow) const { return flow / 2 % system_.server_count(); }
  std::uint32_t process_of(std::uint32_t server) const { return system_.workers() + server; }
  Time now() const { return Time::picoseconds(now_); }
  ServerIteration& current(std::uint32_t worker) { return result_.iterations[worker].back(); }
  ServerUpdate& update(std::uint32_t worker, std::uint32_t server) {
    return result_.updates[update_of_[worker * system_.server_count() + server]];
  }

  void handle(const Event& event);
  void start(Work& work, Time duration);
  void begin_iteration(std::uint32_t worker);
  void compute(std::uint32_t worker);
  void worker_done(std::uint32_t worker);
  void push_gradients(std::uint32_t worker);
  void end_iteration(std::uint32_t worker);

  void send(std::uint32_t flow);
  void join(std::uint32_t flow);
  void arrive(std::uint32_t flow);
  void count_flow(std::uint32_t flow, int change);

  void serve(std::uint32_t server);
  Time duration_of(const Server& server, std::uint32_t index) const;
  void server_done(std::uint32_t server);
  void add_gradient(std::uint32_t server);
  void apply_gradient(std::uint32_t server);
  void answer(std::uint32_t server, std::uint32_t worker);

  void settle();
  double effort(std::uint32_t flow, Rate rate) const;
  void settle_hosts();
  void retime(Work& work, std::uint32_t process, Factor slowdown);
  void settle_flows();
  Factor slowdown_of(std::uint32_t process, bool computes) const;
  [[noreturn]] void refuse_stuck() const;
  void check_starved() const;
  void leave_out_unfinished();

  const ServerSystem& system_;
  ServerDelays delays_;
  EventQueue queue_;
  Sharing sharing_;
  std::vector<Worker> workers_;
  std::vector<Server> servers_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> flowing_;           ///< flows, ascending
  std::vector<std::uint32_t> flows_of_process_;  ///< that it sends or receives
  std::vector<std::size_t> update_of_;           ///< by worker and server: the last one's index
  std::vector<std::int64_t> held_;               ///< by worker and server: version it computes on
  struct Host {
    std::uint32_t computing = 0;
    double others = 0;  ///< cores that others want
    Factor pressure, computing_pressure;
  };
  std::vector<Host> hosts_;
  ServerRun result_;
  std::int64_t now_ = 0;
  std::uint32_t unfinished_;  ///< workers
  std::uint64_t done_ = 0, most_;
};

ServerSimulation::ServerSimulation(const ServerSystem& system)
    : system_(system),
      delays_(system),
      sharing_(system.network->links()),
      workers_(system.workers()),
      servers_(system.server_count()),
      flows_(std::size_t{2} * system.workers() * system.server_count()),
      flows_of_process_(system.workers() + system.server_count(), 0),
      update_of_(std::size_t{system.workers()} * system.server_count(), 0),
      held_(update_of_.size(), 0),
      unfinished_(system.workers()),
      most_(kPatience * system.iterations * system.workers()) {
  LOCKSTEP_ASSERT(system.network->workers() == system.workers() + system.server_count(),
                  "the network connects workers and servers");
  LOCKSTEP_ASSERT(system.pack.size() == workers_.size() && system.unpack.size() == workers_.size(),
                  "every worker packs and unpacks");
  LOCKSTEP_ASSERT(
      system.servers.size() == servers_.size() && system.messages.size() == servers_.size(),
      "every server has its costs");
  for (std::uint32_t flow = 0; flow < flows_.size(); ++flow) {
    const std::uint32_t worker = worker_of(flow), server = process_of(server_of(flow));
    flows_[flow].route = flow % 2 == 0 ? system.network->route(worker, server)
                                       : system.network->route(server, worker);
  }
  for (Server& server : servers_) server.clock.resize(workers_.size(), 0);
  for (const std::uint32_t host : system.cores.host_of) {
    if (host >= hosts_.size()) hosts_.resize(host + 1);
  }
  result_.iterations.resize(workers_.size());
  result_.carried.resize(system.network->links().size());
}

ServerRun ServerSimulation::run() {
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) begin_iteration(worker);
  settle();
  while (!finished()) {
    if (queue_.empty()) refuse_stuck();
    now_ = queue_.top().time;
    while (!queue_.empty() && queue_.top().time == now_) handle(queue_.pop());
    settle();
  }
  result_.end = now();
  check_starved();
  leave_out_unfinished();
  return std::move(result_);
}

void ServerSimulation::handle(const Event& event) {
  switch (event.kind()) {
    case EventKind::task_end: {
      const bool worker = event.target < workers_.size();
      const auto server = event.target - static_cast<std::uint32_t>(workers_.size());
      Work& work = worker ? workers_[event.target].work : servers_[server].work;
      if (event.generation != work.generation) return;
      work.running = false;
      return worker ? worker_done(event.target) : server_done(server);
    }
    case EventKind::message_join:
      return join(event.target);
    case EventKind::message_end:
      if (event.generation == flows_[event.target].generation) arrive(event.target);
      return;
    case EventKind::transfer_end:
    case EventKind::reduction_end:
      break;
  }
  LOCKSTEP_ASSERT(false, "no such event among workers and servers");
}

/// Its event comes when its host has been settled.
void ServerSimulation::start(Work& work, Time duration) {
  work.end = now_ + duration.ps();
  work.slowdown = Factor{};
  work.running = true;
  work.scheduled = false;
}

void ServerSimulation::begin_iteration(std::uint32_t index) {
  result_.iterations[index].push_back({.start = now()});
  const Time delay = delays_.next(index, workers_[index].iteration, now());
  if (delay == Time{}) return compute(index);
  workers_[index].stage = Stage::pause;
  start(workers_[index].work, delay);
}

void ServerSimulation::compute(std::uint32_t index) {
  Worker& worker = workers_[index];
  current(index).begun = now();
  worker.stage = Stage::compute;
  const std::vector<Time>& times = system_.compute[index];
  start(worker.work, times[worker.iteration % times.size()]);
}

void ServerSimulation::worker_done(std::uint32_t index) {
  Worker& worker = workers_[index];
  switch (worker.stage) {
    case Stage::pause:
      return compute(index);
    case Stage::compute:
      current(index).computed = now();
      worker.stage = Stage::pack;
      return start(worker.work, system_.pack[index]);
    case Stage::pack:
      current(index).packed = now();
      worker.stage = Stage::exchange;
      return push_gradients(index);
    case Stage::unpack:
      return end_iteration(index);
    case Stage::exchange:
      break;
  }
  LOCKSTEP_ASSERT(false, "who exchanges has no work of its own");
}

void ServerSimulation::push_gradients(std::uint32_t index) {
  Worker& worker = workers_[index];
  worker.missing = system_.server_count();
  for (std::uint32_t server = 0; server < servers_.size(); ++server) {
    const std::size_t at = std::size_t{index} * servers_.size() + server;
    update_of_[at] = result_.updates.size();
    result_.updates.push_back({.server = server,
                               .worker = index,
                               .iteration = worker.iteration,
                               .computed_on = held_[at],
                               .sent = now()});
    send(way(index, server, /*push=*/true));
  }
}

void ServerSimulation::end_iteration(std::uint32_t index) {
  Worker& worker = workers_[index];
  current(index).end = now();
  ++done_;
  if (++worker.iteration == system_.iterations) --unfinished_;
  begin_iteration(index);
}

void ServerSimulation::send(std::uint32_t flow) {
  const Time latency = flows_[flow].route.latency + system_.messages[server_of(flow)].latency;
  count_flow(flow, 1);
  queue_.push(now_ + latency.ps(), EventKind::message_join, flow, 0);
}

/// A message is on its way from here to there, or has arrived.
void ServerSimulation::count_flow(std::uint32_t flow, int change) {
  const std::uint32_t worker = worker_of(flow);
  for (const std::uint32_t process : {worker, process_of(server_of(flow))}) {
    flows_of_process_[process] += static_cast<std::uint32_t>(change);
  }
  if (change > 0 && flows_of_process_[worker] == 1) workers_[worker].flowing_since = now_;
  if (change < 0 && flows_of_process_[worker] == 0) {
    current(worker).transferring += Time::picoseconds(now_ - workers_[worker].flowing_since);
  }
}

void ServerSimulation::join(std::uint32_t flow) {
  sharing_.add(flow, flows_[flow].route.links, system_.messages[server_of(flow)].rate);
  flowing_.insert(std::ranges::lower_bound(flowing_, flow), flow);
  flows_[flow].rate = 0;
}

void ServerSimulation::arrive(std::uint32_t flow) {
  const std::uint32_t worker = worker_of(flow), server = server_of(flow);
  sharing_.remove(flow);
  flowing_.erase(std::ranges::lower_bound(flowing_, flow));
  ++flows_[flow].generation;
  count_flow(flow, -1);
  for (const std::uint32_t link : flows_[flow].route.links) {
    result_.carried[link] += system_.shards[server];
  }
  if (flow % 2 == 0) {
    update(worker, server).arrived = now();
    servers_[server].queue.push_back({.update = true, .worker = worker});
    return serve(server);
  }
  update(worker, server).received = now();
  if (--workers_[worker].missing > 0) return;
  current(worker).received = now();
  workers_[worker].stage = Stage::unpack;
  start(workers_[worker].work, system_.unpack[worker]);
}

Time ServerSimulation::duration_of(const Server& server, std::uint32_t index) const {
  const ServerCost& cost = system_.servers[index];
  if (!server.job.update) return cost.copy;
  if (!synchronous()) return cost.apply;
  // The first gradient is the sum so far.
  const Time adding = server.added == 0 ? Time{} : cost.add;
  return server.added + 1 == workers_.size() ? adding + cost.apply : adding;
}

void ServerSimulation::serve(std::uint32_t index) {
  Server& server = servers_[index];
  if (server.work.running || server.queue.empty()) return;
  server.job = server.queue.front();
  server.queue.pop_front();
  if (server.job.update) update(server.job.worker, index).served = now();
  start(server.work, duration_of(server, index));
}

void ServerSimulation::server_done(std::uint32_t index) {
  const Server& server = servers_[index];
  if (!server.job.update) {
    answer(index, server.job.worker);
  } else if (synchronous()) {
    add_gradient(index);
  } else {
    apply_gradient(index);
  }
  serve(index);
}

void ServerSimulation::add_gradient(std::uint32_t index) {
  Server& server = servers_[index];
  server.waiting.push_back(server.job.worker);
  if (++server.added < workers_.size()) return;
  server.added = 0;
  ++server.version;
  for (const std::uint32_t worker : std::exchange(server.waiting, {})) {
    update(worker, index).applied_at = server.version - 1;
    update(worker, index).applied = now();
    answer(index, worker);
  }
}

void ServerSimulation::apply_gradient(std::uint32_t index) {
  Server& server = servers_[index];
  ServerUpdate& mine = update(server.job.worker, index);
  mine.applied_at = server.version++;
  mine.applied = now();
  ++server.clock[server.job.worker];
  server.waiting.push_back(server.job.worker);
  const std::int64_t slowest = *std::ranges::min_element(server.clock);
  const auto held_back = [&](std::uint32_t worker) {
    return system_.staleness && server.clock[worker] - slowest > *system_.staleness;
  };
  std::vector<std::uint32_t> left;
  auto place = server.queue.begin();  // answers come before gradients that have arrived meanwhile
  for (const std::uint32_t worker : server.waiting) {
    if (held_back(worker)) {
      left.push_back(worker);
    } else {
      place = std::next(server.queue.insert(place, Job{.update = false, .worker = worker}));
    }
  }
  server.waiting = std::move(left);
}

void ServerSimulation::answer(std::uint32_t server, std::uint32_t worker) {
  held_[std::size_t{worker} * servers_.size() + server] = servers_[server].version;
  update(worker, server).replied = now();
  send(way(worker, server, /*push=*/false));
}

void ServerSimulation::settle() {
  settle_hosts();
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    const Stage stage = workers_[i].stage;
    retime(workers_[i].work, i,
           stage == Stage::pause ? Factor{} : slowdown_of(i, stage == Stage::compute));
  }
  for (std::uint32_t i = 0; i < servers_.size(); ++i) {
    retime(servers_[i].work, process_of(i), slowdown_of(process_of(i), false));
  }
  settle_flows();
}

/// How much of a core a message takes at each of its ends.
double ServerSimulation::effort(std::uint32_t flow, Rate rate) const {
  const Bandwidth alone = system_.messages[server_of(flow)].rate;
  const double share =
      alone > Bandwidth{} ? static_cast<double>(rate) / static_cast<double>(to_rate(alone)) : 1;
  return system_.cores.transfer * std::min(1.0, share);
}

/// Counts who wants its cores.
void ServerSimulation::settle_hosts() {
  const SharedCores& cores = system_.cores;
  if (hosts_.empty()) return;
  for (Host& host : hosts_) host = {};
  for (std::uint32_t process = 0; process < cores.host_of.size(); ++process) {
    Host& host = hosts_[cores.host_of[process]];
    const bool worker = process < workers_.size();
    const Work& work = worker ? workers_[process].work : servers_[process - workers_.size()].work;
    if (!work.running) continue;
    if (worker && workers_[process].stage == Stage::compute) {
      ++host.computing;
    } else {
      host.others += 1;
    }
  }
  for (const std::uint32_t flow : flowing_) {
    const double wanted = effort(flow, sharing_.rates()[flow]);
    hosts_[cores.host_of[worker_of(flow)]].others += wanted;
    hosts_[cores.host_of[process_of(server_of(flow))]].others += wanted;
  }
  for (Host& host : hosts_) {
    const double computing = host.computing * cores.threads / cores.cores;
    const double turns = std::max(1.0, computing + host.others / cores.cores);
    host.pressure = Factor::of(turns);
    const std::size_t together = std::min<std::size_t>(host.computing, cores.together.size());
    if (together == 0) continue;
    host.computing_pressure =
        Factor::of(turns / std::max(1.0, computing)) * cores.together[together - 1];
  }
}

Factor ServerSimulation::slowdown_of(std::uint32_t process, bool computes) const {
  if (hosts_.empty()) return Factor{};
  const Host& host = hosts_[system_.cores.host_of[process]];
  return computes ? host.computing_pressure : host.pressure;
}

void ServerSimulation::retime(Work& work, std::uint32_t process, Factor slowdown) {
  if (!work.running || (work.scheduled && work.slowdown == slowdown)) return;
  work.end = now_ + multiply_divide(work.end - now_, static_cast<std::int64_t>(slowdown.raw()),
                                    static_cast<std::int64_t>(work.slowdown.raw()));
  work.slowdown = slowdown;
  work.scheduled = true;
  queue_.push(work.end, EventKind::task_end, process, ++work.generation);
}

void ServerSimulation::settle_flows() {
  if (flowing_.empty()) return;
  const std::vector<Rate>& rates = sharing_.rates();
  for (const std::uint32_t index : flowing_) {
    Flow& flow = flows_[index];
    Rate rate = rates[index];
    if (!hosts_.empty() && system_.cores.slow_transfers) {
      const Factor turns = std::max(slowdown_of(worker_of(index), false),
                                    slowdown_of(process_of(server_of(index)), false));
      rate = std::max<Rate>(
          1, multiply_divide(rate, kFactorOne, static_cast<std::int64_t>(turns.raw())));
    }
    if (rate == flow.rate) continue;
    const std::int64_t left = flow.rate == 0
                                  ? flow_time(system_.shards[server_of(index)].count, rate)
                                  : multiply_divide(flow.end - now_, flow.rate, rate);
    flow.rate = rate;
    flow.end = now_ + left;
    queue_.push(flow.end, EventKind::message_end, index, ++flow.generation);
  }
}

void ServerSimulation::refuse_stuck() const {
  for (std::uint32_t index = 0; index < workers_.size(); ++index) {
    if (workers_[index].work.running) continue;
    throw InputError({}, "strategy.staleness",
                     fmt::format("all wait for each other: worker {} for {} servers in iteration "
                                 "{}",
                                 index, workers_[index].missing, workers_[index].iteration));
  }
  LOCKSTEP_ASSERT(false, "somebody waits where nothing happens any more");
}

void ServerSimulation::check_starved() const {
  if (unfinished_ == 0) return;
  // The first two stay out of the statistics.
  const std::uint32_t least = std::min<std::uint32_t>(3, system_.iterations);
  for (std::uint32_t index = 0; index < workers_.size(); ++index) {
    const std::uint32_t done = workers_[index].iteration;
    if (done >= least) continue;
    throw InputError({}, "strategy.staleness",
                     fmt::format("worker {} starves: it has done {} iterations while all others "
                                 "together did {}",
                                 index, done, done_ - done),
                     "a bound, such as staleness: 4, makes the others wait for it");
  }
}

void ServerSimulation::leave_out_unfinished() {
  for (std::vector<ServerIteration>& iterations : result_.iterations) iterations.pop_back();
  std::erase_if(result_.updates, [this](const ServerUpdate& each) {
    return each.iteration >= workers_[each.worker].iteration;
  });
}

}  // namespace

ServerRun run(const ServerSystem& system) {
  return ServerSimulation(system).run();
}

}  // namespace lockstep
