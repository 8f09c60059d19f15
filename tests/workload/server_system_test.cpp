#include "sim/workload/server_system.h"

#include <algorithm>
#include <memory>
#include <random>

#include "sim/core/error.h"
#include "sim/core/variability.h"
#include "tests/catch.h"

namespace lockstep {
namespace {

using Times = std::vector<Time>;

Time ms(double count) {
  return Time::from_seconds(count * 1e-3);
}

/// Each process on a host of its own, 1 GB/s each way to a switch: 1 MB takes 1 ms.
struct System : ServerSystem {
  std::unique_ptr<Network> owned;
  System(const Times& computing, std::vector<Bytes> held, std::optional<std::int64_t> bound) {
    for (const Time time : computing) compute.push_back({time});
    shards = std::move(held);
    staleness = bound;
    pack.resize(computing.size());
    unpack.resize(computing.size());
    servers.resize(shards.size(), {.add = {}, .apply = ms(1), .copy = {}});
    messages.resize(shards.size());
    PlainNetwork plain;
    plain.workers = static_cast<std::uint32_t>(computing.size() + shards.size());
    plain.device_bandwidth = {8'000'000'000'000};
    plain.host_bandwidth = {1'000'000'000};
    owned = std::make_unique<Network>(plain_network(plain));
    network = owned.get();
    iterations = 5;
  }
};

Times ends(const ServerRun& run, std::size_t worker) {
  Times times;
  for (const ServerIteration& iteration : run.iterations.at(worker)) times.push_back(iteration.end);
  return times;
}

/// Of a worker's iteration, at a server.
const ServerUpdate& update(const ServerRun& run, std::uint32_t worker, std::uint32_t iteration,
                           std::uint32_t server = 0) {
  return *std::ranges::find_if(run.updates, [&](const ServerUpdate& each) {
    return each.worker == worker && each.iteration == iteration && each.server == server;
  });
}

constexpr Bytes kMegabyte{1'000'000};

TEST_CASE("two workers, one server, asynchronous", "[servers]") {
  // Both compute 0-10, share the server's link until 12. Updates: worker 0 12-13, worker 1 13-14;
  // answers 13-14 and 14-15. From then on each has the server to itself: compute 10, push 1,
  // update 1, pull 1: 13 ms.
  const System system({ms(10), ms(10)}, {kMegabyte}, std::nullopt);
  const ServerRun ran = run(system);
  CHECK(ends(ran, 0) == Times{ms(14), ms(27), ms(40), ms(53), ms(66)});
  CHECK(ends(ran, 1) == Times{ms(15), ms(28), ms(41), ms(54), ms(67)});
  CHECK(ran.end == ms(67));
  CHECK(update(ran, 0, 0).arrived == ms(12));
  CHECK(update(ran, 1, 0).served == ms(13));
  CHECK(update(ran, 0, 0).staleness() == 0);
  CHECK(update(ran, 1, 0).staleness() == 1);
  for (std::uint32_t i = 1; i < 5; ++i) {
    CHECK(update(ran, 0, i).applied_at == 2 * i);
    CHECK(update(ran, 0, i).staleness() == 1);
    CHECK(update(ran, 1, i).staleness() == 1);
  }
  CHECK(ran.iterations[0][1].transferring == ms(2));
}

TEST_CASE("two workers, one server, synchronous", "[servers]") {
  // Gradients arrive at 12; the second is added in 0.5, the update applied in 1: 13.5. Both
  // answers share the server's link: 15.5. All steps are the same.
  System system({ms(10), ms(10)}, {kMegabyte}, 0);
  system.servers[0].add = ms(0.5);
  system.servers[0].copy = ms(100);  // who changes nothing before all have it sends it as it is
  const ServerRun ran = run(system);
  const Times all{ms(15.5), ms(31), ms(46.5), ms(62), ms(77.5)};
  CHECK(ends(ran, 0) == all);
  CHECK(ends(ran, 1) == all);
  for (const ServerUpdate& each : ran.updates) {
    CHECK(each.staleness() == 0);
    CHECK(each.applied_at == each.iteration);
  }
}

TEST_CASE("three workers, two servers, asynchronous", "[servers]") {
  // Three gradients share each server's link: 10-13. Updates end at 14, 15, 16. A worker's two
  // answers share its own link, 2 ms: until 16, 17, 18. Then 10 + 2 + 1 + 2 ms, in turns of 1 ms,
  // in which two halves of each server's link suffice.
  const System system({ms(10), ms(10), ms(10)}, {kMegabyte, kMegabyte}, std::nullopt);
  const ServerRun ran = run(system);
  CHECK(ends(ran, 0) == Times{ms(16), ms(31), ms(46), ms(61), ms(76)});
  CHECK(ends(ran, 1) == Times{ms(17), ms(32), ms(47), ms(62), ms(77)});
  CHECK(ends(ran, 2) == Times{ms(18), ms(33), ms(48), ms(63), ms(78)});
  for (std::uint32_t worker = 0; worker < 3; ++worker) {
    for (std::uint32_t server = 0; server < 2; ++server) {
      CHECK(update(ran, worker, 0, server).staleness() == worker);
      CHECK(update(ran, worker, 3, server).staleness() == 2);
    }
  }
}

TEST_CASE("three workers, one server, synchronous: the slowest sets the pace", "[servers]") {
  // Gradients of 10 and 20 ms of computing have arrived at 11 and 21, the third at 31. Update until
  // 32; three answers share the link until 35.
  const System system({ms(10), ms(20), ms(30)}, {kMegabyte}, 0);
  const ServerRun ran = run(system);
  for (std::size_t worker = 0; worker < 3; ++worker) {
    CHECK(ends(ran, worker) == Times{ms(35), ms(70), ms(105), ms(140), ms(175)});
  }
  CHECK(update(ran, 0, 0).arrived == ms(11));
}

TEST_CASE("a bound holds the fast worker back until the slow one has come after", "[servers]") {
  // Nothing but computing takes time. Worker 0 may be one iteration ahead: it has done two at 20
  // and gets its answer when worker 1 has done one, at 40; then one for each of worker 1's.
  System system({ms(10), ms(40)}, {Bytes{}}, 1);
  system.servers[0].apply = {};
  system.iterations = 4;
  const ServerRun ran = run(system);
  CHECK(ends(ran, 1) == Times{ms(40), ms(80), ms(120), ms(160)});
  Times fast = ends(ran, 0);
  REQUIRE(fast.size() >= 4);
  fast.resize(4);
  CHECK(fast == Times{ms(10), ms(40), ms(80), ms(120)});
  CHECK(update(ran, 1, 0).staleness() == 2);
  CHECK(update(ran, 1, 1).staleness() == 1);
  CHECK(update(ran, 0, 2).staleness() == 0);
  system.staleness = std::nullopt;
  CHECK(std::ssize(run(system).iterations[0]) == 16);  // the last one at 160, too
}

TEST_CASE("a server answers before it takes the next gradient", "[servers]") {
  // Both gradients are there at 12; update 1, copy 2, and again.
  System system({ms(10), ms(10)}, {kMegabyte}, std::nullopt);
  system.servers[0].copy = ms(2);
  const ServerRun ran = run(system);
  CHECK(update(ran, 0, 0).replied == ms(15));
  CHECK(update(ran, 1, 0).served == ms(15));
  CHECK(update(ran, 1, 0).replied == ms(18));
}

TEST_CASE("cores are shared, and workers beside each other are slower", "[servers]") {
  System system({ms(10), ms(10)}, {Bytes{}}, 0);
  system.servers[0].apply = {};
  system.cores.host_of = {0, 0, 0};
  system.cores.cores = 2;
  CHECK(ends(run(system), 0).front() == ms(10));
  system.cores.together = {Factor{}, Factor::of(1.5)};
  CHECK(ends(run(system), 0).front() == ms(15));
  // Alone after 15: 5 ms that worker 1 has left of 15, of which each second took 1.5.
  system.compute[1] = {ms(15)};
  CHECK(ends(run(system), 0).front() == ms(20));
  // On one core they take turns with copies: 10 of worker 1's 20 ms beside worker 0's computing and
  // packing, until 20 + 20; it packs alone.
  system.cores = {.host_of = {0, 0, 0}, .cores = 1, .together = {Factor{}, Factor::of(2)}};
  system.compute = {{ms(10)}, {ms(20)}};
  system.pack = {ms(10), ms(10)};
  CHECK(ends(run(system), 0).front() == ms(50));
}

TEST_CASE("transfers want cores where they are work of a host's cores", "[servers]") {
  // Two gradients share what the server can receive: half a core each to send, one to receive.
  System system({ms(10), ms(10)}, {kMegabyte}, 0);
  system.messages = {{.latency = {}, .rate = {1'000'000'000}}};
  system.cores = {.host_of = {0, 0, 0}, .cores = 2, .together = {Factor{}}, .slow_transfers = true};
  CHECK(update(run(system), 0, 0).arrived == ms(12));
  system.cores.cores = 1;
  system.cores.together = {Factor{}, Factor::of(2)};
  CHECK(update(run(system), 0, 0).arrived == ms(24));
  // One alone wants a core at each end, the other computes on: three on two.
  system.cores.cores = 2;
  system.cores.together = {Factor{}};
  system.compute[1] = {ms(30)};
  CHECK(update(run(system), 0, 0).arrived == ms(11.5));
  CHECK(run(system).iterations[1].front().computed == ms(30.5));
}

/// Of one worker, `time` in every second iteration.
DrawnDelay every_other(Time time) {
  return {.time = time,
          .variability = {.kind = Variability::Kind::periodic, .every = 2, .high = 1, .low = 0},
          .stream = 0};
}

std::vector<std::int64_t> staleness_of(const ServerRun& run, std::uint32_t worker, int count) {
  std::vector<std::int64_t> result;
  for (int i = 0; i < count; ++i) {
    result.push_back(update(run, worker, static_cast<std::uint32_t>(i)).staleness());
  }
  return result;
}

TEST_CASE("a worker that stops, of two: synchronous, both wait; free, only it is late",
          "[servers]") {
  // Nothing but computing takes time, 10 and 11 ms; worker 1 stops for 5 ms in iterations 1 and 3.
  System system({ms(10), ms(11)}, {Bytes{}}, 0);
  system.servers[0].apply = {};
  system.delays = {{}, {every_other(ms(5))}};
  const ServerRun together = run(system);
  const Times all{ms(11), ms(27), ms(38), ms(54), ms(65)};
  CHECK(ends(together, 0) == all);
  CHECK(ends(together, 1) == all);
  CHECK(together.iterations[1][1].begun == ms(16));
  CHECK(together.iterations[0][1].begun == ms(11));
  // Free, worker 0 updates at 10, 20, ..., worker 1 as before: 10 | 20 | 30 | 40, 50 | 60 lie
  // between its updates, and of its own 11, 27, 38, none and 54 between those of worker 0.
  system.staleness = std::nullopt;
  const ServerRun free = run(system);
  CHECK(ends(free, 1) == all);
  Times fast = ends(free, 0);
  fast.resize(5);
  CHECK(fast == Times{ms(10), ms(20), ms(30), ms(40), ms(50)});
  CHECK(staleness_of(free, 1, 5) == std::vector<std::int64_t>{1, 1, 1, 2, 1});
  CHECK(staleness_of(free, 0, 6) == std::vector<std::int64_t>{0, 1, 1, 1, 0, 1});
}

TEST_CASE("a worker that stops, of three: synchronous, all wait; free, it is further behind",
          "[servers]") {
  // 10, 11 and 14 ms; worker 1 stops for 5 ms in iterations 1 and 3: 16 ms, else worker 2's 14.
  System system({ms(10), ms(11), ms(14)}, {Bytes{}}, 0);
  system.servers[0].apply = {};
  system.delays = {{}, {every_other(ms(5))}, {}};
  const ServerRun together = run(system);
  for (std::size_t worker = 0; worker < 3; ++worker) {
    CHECK(ends(together, worker) == Times{ms(14), ms(30), ms(44), ms(60), ms(74)});
  }
  for (const ServerUpdate& each : together.updates) CHECK(each.staleness() == 0);
  // Free, worker 1 updates at 11, 27, 38, 54 and 65, worker 2 at 14, 28, 42, 56, worker 0 at all
  // tens: 10 | 14, 20 | 28, 30 | 40, 42, 50 | 56, 60 lie between those of worker 1.
  system.staleness = std::nullopt;
  const ServerRun free = run(system);
  CHECK(ends(free, 1) == Times{ms(11), ms(27), ms(38), ms(54), ms(65)});
  CHECK(ends(free, 2) == Times{ms(14), ms(28), ms(42), ms(56), ms(70)});
  CHECK(staleness_of(free, 1, 5) == std::vector<std::int64_t>{1, 2, 2, 3, 2});
  CHECK(staleness_of(free, 2, 4) == std::vector<std::int64_t>{2, 2, 3, 2});
}

TEST_CASE("pauses by the clock, and draws of later iterations", "[servers]") {
  // 11 ms each; pauses at 30 and 60. The one at 30 falls due in the third iteration, so that the
  // fourth stops; the one at 60 when the fifth has just ended.
  System system({ms(11)}, {Bytes{}}, std::nullopt);
  system.servers[0].apply = {};
  system.iterations = 6;
  system.delays = {{{.time = ms(5),
                     .variability = {.kind = Variability::Kind::periodic, .period = ms(30)},
                     .stream = 0}}};
  CHECK(ends(run(system), 0) == Times{ms(11), ms(22), ms(33), ms(49), ms(60), ms(76)});
  system.delays = {{every_other(ms(5))}};
  CHECK(ends(run(system), 0) == Times{ms(11), ms(27), ms(38), ms(54), ms(65), ms(81)});
  system.first_draw = 1;
  CHECK(ends(run(system), 0) == Times{ms(16), ms(27), ms(43), ms(54), ms(70), ms(81)});
}

TEST_CASE("who stops keeps a core busy, and no want of cores makes it longer", "[servers]") {
  // One core: in the 5 ms that worker 1 stops, worker 0 does 2.5 of its 10; the other 7.5 beside
  // worker 1 take 15, until 20, in which that does 7.5 as well, and alone its last 2.5.
  System system({ms(10), ms(10)}, {Bytes{}}, 0);
  system.servers[0].apply = {};
  system.cores = {.host_of = {0, 0, 0}, .cores = 1, .together = {Factor{}, Factor::of(2)}};
  system.delays = {{}, {{.time = ms(5), .variability = {}, .stream = 0}}};
  const ServerRun ran = run(system);
  CHECK(ran.iterations[1].front().begun == ms(5));
  CHECK(ran.iterations[0].front().computed == ms(20));
  CHECK(ran.iterations[1].front().computed == ms(22.5));
}

TEST_CASE("delays beyond what the clock holds are refused", "[servers]") {
  System system({ms(1), ms(1)}, {Bytes{}}, 0);
  constexpr double kTwoMonths = 5e6;
  system.delays = {{}, {{.time = Time::from_seconds(kTwoMonths), .variability = {}, .stream = 0}}};
  CHECK_THROWS_WITH(run(system), Contains("worker 1 stops beyond the simulated time"));
}

struct Random {
  std::mt19937 engine;
  int count(int low, int high) { return std::uniform_int_distribution(low, high)(engine); }
  System system() {
    Times computing;
    for (int n = count(2, 5); n > 0; --n) computing.push_back(ms(count(5, 40)));
    std::vector<Bytes> held;
    for (int k = count(1, 3); k > 0; --k) held.push_back({count(0, 9) * 500'000});
    const int bound = count(-1, 3);
    System made(computing, held, bound < 0 ? std::nullopt : std::optional<std::int64_t>(bound));
    for (ServerCost& cost : made.servers)
      cost = {ms(count(0, 3)), ms(count(0, 3)), ms(count(0, 2))};
    for (std::size_t worker = 0; worker < computing.size() && count(0, 1) == 1; ++worker) {
      made.delays.resize(computing.size());
      made.delays[worker] = {
          {.time = ms(count(1, 9)),
           .variability = {.kind = Variability::Kind::log_normal, .sigma = 0.1 * count(0, 9)},
           .stream = 3}};
    }
    made.iterations = 12;
    return made;
  }
};

/// Gradients of a worker that a server has applied before `at`, or in that instant.
std::int64_t applied(const ServerRun& ran, std::uint32_t worker, std::uint32_t server, Time at) {
  return std::ranges::count_if(ran.updates, [&](const ServerUpdate& each) {
    return each.worker == worker && each.server == server && each.applied <= at;
  });
}

TEST_CASE("no worker is further ahead than its bound, and servers apply all, once", "[servers]") {
  Random random{std::mt19937(11)};
  for (int round = 0; round < 60; ++round) {
    const System system = random.system();
    const ServerRun ran = run(system);
    INFO("round " << round);
    std::vector<std::vector<std::int64_t>> versions(system.shards.size());
    for (const ServerUpdate& each : ran.updates) {
      versions[each.server].push_back(each.applied_at);
      CHECK(each.staleness() >= 0);
      if (system.staleness == 0) CHECK(each.staleness() == 0);
    }
    for (auto& seen : versions) {
      std::ranges::sort(seen);
      const bool twice = std::ranges::adjacent_find(seen) != seen.end();
      CHECK(twice == (system.staleness == 0));
    }
    for (std::uint32_t worker = 0; worker < system.workers(); ++worker) {
      REQUIRE(ran.iterations[worker].size() >= system.iterations);
      if (!system.staleness) continue;
      for (std::int64_t i = 1; i < system.iterations; ++i) {
        const Time start = ran.iterations[worker][static_cast<std::size_t>(i)].start;
        for (std::uint32_t other = 0; other < system.workers(); ++other) {
          for (std::uint32_t server = 0; server < system.server_count(); ++server) {
            CHECK(applied(ran, other, server, start) >= i - *system.staleness);
          }
        }
      }
    }
  }
}

TEST_CASE("links carry each shard once each way a step, and no more than they can", "[servers]") {
  Random random{std::mt19937(12)};
  for (int round = 0; round < 60; ++round) {
    const System system = random.system();
    const ServerRun ran = run(system);
    INFO("round " << round);
    Bytes all;
    for (const Bytes shard : system.shards) all += shard;
    for (std::uint32_t worker = 0; worker < system.workers(); ++worker) {
      const auto steps = std::ssize(ran.iterations[worker]);
      const Route out = system.network->route(worker, system.workers());
      const Route in = system.network->route(system.workers(), worker);
      for (const std::uint32_t link : {out.links[1], in.links[2]}) {
        const Bytes carried = ran.carried[link];
        CHECK(carried >= Bytes{all.count * steps});
        CHECK(carried <= Bytes{all.count * (steps + 1)});  // one may be under way at the end
      }
    }
    for (std::uint32_t server = 0; server < system.server_count(); ++server) {
      const std::uint32_t process = system.workers() + server;
      const Route in = system.network->route(0, process);
      CHECK(transfer_time(ran.carried[in.links[2]], {1'000'000'000}) <= ran.end);
      const auto updates = std::ranges::count(ran.updates, server, &ServerUpdate::server);
      if (system.staleness != 0) CHECK(system.servers[server].apply * updates <= ran.end);
    }
  }
}

TEST_CASE("equal workers' updates are n - 1 behind", "[servers]") {
  for (int workers = 2; workers <= 6; ++workers) {
    System system(Times(static_cast<std::size_t>(workers), ms(20)), {kMegabyte, kMegabyte},
                  std::nullopt);
    system.iterations = 30;
    const ServerRun ran = run(system);
    for (const ServerUpdate& each : ran.updates) {
      if (each.iteration > 0) CHECK(each.staleness() == workers - 1);
    }
  }
}

TEST_CASE("a worker that never gets anywhere starves, which is said", "[servers]") {
  System system({ms(1), ms(100'000)}, {Bytes{}}, std::nullopt);
  CHECK_THROWS_WITH(run(system), Contains("worker 1 starves") && Contains("staleness: 4"));
  system.staleness = 3;
  CHECK(run(system).iterations[1].size() == 5);
}

TEST_CASE("the same system runs the same way", "[servers]") {
  Random random{std::mt19937(13)};
  const System system = random.system();
  const ServerRun one = run(system), two = run(system);
  CHECK(one.end == two.end);
  CHECK(one.carried == two.carried);
  for (std::size_t worker = 0; worker < one.iterations.size(); ++worker) {
    CHECK(ends(one, worker) == ends(two, worker));
  }
}

}  // namespace
}  // namespace lockstep
