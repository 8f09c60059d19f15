// Workers and servers that are threads of this process, over loopback; and as processes, where one
// of them dies or hangs.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <numeric>
#include <thread>

#include "runner/communicators/gloo.h"
#include "runner/data/loader.h"
#include "runner/measure/options.h"
#include "runner/measure/parity.h"
#include "runner/measure/train.h"
#include "runner/measure/visit_record.h"
#include "runner/models/zoo.h"
#include "runner/strategies/server.h"
#include "sim/core/error.h"
#include "sim/records/run.h"
#include "tests/catch.h"
#include "tests/runner/made_up.h"
#include "tests/runner/process.h"
#include "tests/runner/ranks.h"

namespace lockstep::runner {
namespace {

using lockstep::testing::MeasureProcess;
using lockstep::testing::TemporaryFolder;
using lockstep::testing::wait_for;

StrategyOptions with_servers(int servers, std::optional<std::int64_t> staleness) {
  StrategyOptions options;
  options.kind = "parameter_server";
  options.servers = servers;
  options.staleness = staleness;
  return options;
}

/// Runs `body` on every worker, beside servers; what any of them throws comes out.
void beside_servers(int workers, int servers,
                    const std::function<void(Communicator&, Device&, PointToPoint&)>& body) {
  const auto store = std::make_shared<runner::testing::SharedStore>();
  const int all = workers + servers;
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(all));
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < all; ++rank) {
      ranks.emplace_back([&, rank] {
        try {
          const WorkerEnvironment environment{.rank = rank,
                                              .world_size = all,
                                              .local_rank = rank,
                                              .local_size = all,
                                              .master_address = "127.0.0.1"};
          const auto device = make_cpu_device(1);
          if (rank >= workers) {
            const auto group = make_point_to_point(environment, store);
            serve(*group, [](bool) {});
            return;
          }
          const auto communicator = make_gloo(environment, workers, store);
          const auto group = make_point_to_point(environment, store);
          body(*communicator, *device, *group);
          communicator->barrier();
          for (int server = workers; rank == 0 && server < all; ++server) {
            order_server(*group, server, {.what = ServerOrder::What::leave});
          }
          communicator->barrier();  // nobody hangs up while others still talk
        } catch (...) {
          failures[static_cast<std::size_t>(rank)] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace

TEST_CASE("Synchronous servers train as one device does") {
  for (const auto& [workers, servers] : {std::pair{1, 1}, std::pair{1, 2}, std::pair{2, 1},
                                         std::pair{3, 1}, std::pair{2, 2}, std::pair{3, 2}}) {
    std::vector<Parity> parity(static_cast<std::size_t>(workers));
    beside_servers(
        workers, servers, [&](Communicator& communicator, Device& device, PointToPoint& group) {
          parity[static_cast<std::size_t>(communicator.rank())] = check_parity(
              "small_cnn", with_servers(servers, 0), 4, 1, communicator, device, [] {}, &group);
        });
    INFO(workers << " workers, " << servers << " servers");
    for (const Parity& each : parity) {
      CHECK(each.steps == 3);
      CHECK(each.relative_l2 <= kParityBound);
    }
  }
}

TEST_CASE("In the order in which servers applied them, updates are the same to the bit") {
  for (const auto& [workers, servers] : {std::pair{1, 1}, std::pair{1, 2}, std::pair{2, 1},
                                         std::pair{3, 1}, std::pair{2, 2}, std::pair{3, 2}}) {
    for (const std::optional<std::int64_t> staleness :
         {std::optional<std::int64_t>(), std::optional<std::int64_t>(1)}) {
      std::vector<Parity> parity(static_cast<std::size_t>(workers));
      beside_servers(
          workers, servers, [&](Communicator& communicator, Device& device, PointToPoint& group) {
            parity[static_cast<std::size_t>(communicator.rank())] = check_update_order(
                "small_cnn", with_servers(servers, staleness), 4, 1, communicator, device, group);
          });
      INFO(workers << " workers, " << servers << " servers");
      for (const Parity& each : parity) {
        CHECK(each.steps == 5);
        CHECK(each.relative_l2 == 0);
      }
    }
  }
}

TEST_CASE("A step moves every parameter once each way, and updates are counted by version") {
  constexpr int kWorkers = 2, kServers = 2, kSteps = 6;
  std::vector<std::vector<ServerExchange>> seen(kWorkers);
  std::int64_t bytes = 0;
  std::size_t buckets = 0;
  beside_servers(kWorkers, kServers,
                 [&](Communicator& communicator, Device& device, PointToPoint& group) {
                   Model model = make_model("small_cnn", device.torch(), 1);
                   const auto strategy = make_strategy(with_servers(kServers, std::nullopt), model,
                                                       &communicator, device, &group);
                   Trainer trainer(model, *strategy);
                   for (int step = 0; step < kSteps; ++step) {
                     trainer.step(random_batch(model, 2, 7, device.torch()));
                   }
                   if (communicator.rank() == 0) buckets = strategy->take_buckets().size();
                   seen[static_cast<std::size_t>(communicator.rank())] = strategy->take_exchanges();
                   if (communicator.rank() == 0) bytes = 4 * model.parameter_count();
                 });
  CHECK(buckets == kServers);
  std::vector<std::vector<std::int64_t>> applied(kServers);
  for (const auto& worker : seen) {
    REQUIRE(worker.size() == kServers * kSteps);
    for (int step = 0; step < kSteps; ++step) {
      Bytes out, in;
      for (int server = 0; server < kServers; ++server) {
        const int index = step * kServers + server;
        const ServerExchange& one = worker[static_cast<std::size_t>(index)];
        CHECK(one.server == server);
        CHECK(one.computed_on <= one.applied_at);
        CHECK(one.applied_at < one.received);
        applied[static_cast<std::size_t>(server)].push_back(one.applied_at);
        out += one.out;
        in += one.in;
      }
      CHECK(out == Bytes{bytes});
      CHECK(in == Bytes{bytes});
    }
  }
  for (auto& versions : applied) {
    std::ranges::sort(versions);
    std::vector<std::int64_t> all(kWorkers * kSteps);
    std::iota(all.begin(), all.end(), 0);
    CHECK(versions == all);
  }
}

TEST_CASE("A worker waits for the slowest where it would get too far ahead") {
  constexpr int kBound = 1, kSteps = 8;
  std::atomic<int> slow_pushes = 0, most_ahead = 0;
  beside_servers(2, 1, [&](Communicator& communicator, Device& device, PointToPoint& group) {
    Model model = make_model("small_cnn", device.torch(), 1);
    const auto strategy =
        make_strategy(with_servers(1, kBound), model, &communicator, device, &group);
    Trainer trainer(model, *strategy);
    const Batch batch = random_batch(model, 2, 7, device.torch());
    for (int step = 0; step < kSteps; ++step) {
      if (communicator.rank() == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(40));
        ++slow_pushes;
      } else {
        most_ahead = std::max<int>(most_ahead, step - slow_pushes);
      }
      trainer.step(batch);
    }
  });
  CHECK(most_ahead <= kBound);
  CHECK(most_ahead > 0);
}

TEST_CASE("Servers say what their work takes") {
  ServerWork small, large;
  beside_servers(2, 2, [&](Communicator& communicator, Device&, PointToPoint& group) {
    if (communicator.rank() > 0) return;
    small = time_server_work(group, communicator.size(), {4096}, 3);
    large = time_server_work(group, communicator.size(), {16 << 20}, 3);
  });
  CHECK(small.add > 0);
  CHECK(small.apply > 0);
  CHECK(small.copy > 0);
  // Four thousand times as many bytes.
  CHECK(large.add > small.add);
  CHECK(large.apply > small.apply);
  CHECK(large.copy > small.copy);
}

TEST_CASE("More servers than parameters are refused, and servers need workers") {
  const auto device = make_cpu_device(1);
  Model model = make_model("small_cnn", device->torch(), 1);
  CHECK_THROWS_AS(make_strategy({.kind = "parameter_server"}, model, nullptr, *device), RunError);
  const TemporaryFolder folder;
  MeasureProcess process(
      folder, lockstep::testing::replay(
                  folder, {"--steps", "1", "--strategies", "parameter_server", "--servers", "2"}));
  CHECK(process.exit_code() == 2);
  INFO(process.errors());
  CHECK(process.one_error_line());
  CHECK_THAT(process.errors(), Contains("2 servers cannot share 1 parameters"));
}

TEST_CASE("A delayed worker delays all where steps are synchronous, and is in the record") {
  const std::string late =
      "{worker: 1, delay: {kind: periodic, duration: 60ms, every: 1}, part: backward}";
  const TemporaryFolder folder;
  MeasureProcess process(
      folder, lockstep::testing::replay(folder, {"--steps", "3", "--strategies", "parameter_server",
                                                 "--straggler", late}));
  INFO(process.errors());
  REQUIRE(process.exit_code() == 0);
  const std::vector<Run> runs = read_runs(folder.file("out/runs.json"));
  const auto served = std::ranges::find_if(
      runs, [](const Run& run) { return run.strategy.kind == "parameter_server"; });
  REQUIRE(served != runs.end());
  REQUIRE(served->stragglers.size() == 1);
  CHECK(served->stragglers[0].part == StepPart::backward);
  CHECK(served->repeats.at(0).step.p50 >= Time::milliseconds(50));  // rank 0, who waits
}

TEST_CASE("Flags of servers") {
  const auto parse = [](std::vector<const char*> words) {
    words.insert(words.begin(), "lockstep-measure");
    return parse_options(static_cast<int>(words.size()), words.data());
  };
  const auto free =
      parse({"--strategies", "ddp,parameter_server", "--servers", "2", "--staleness", "none"});
  CHECK(servers_beside(free) == 2);
  CHECK_FALSE(free.of_strategies.staleness);
  CHECK(servers_beside(parse({})) == 0);
  CHECK(parse({"--strategies", "parameter_server"}).of_strategies.staleness == 0);
  // A GPU may be alone with its servers.
  const auto on_gpus = parse(
      {"--strategies", "parameter_server", "--device", "cuda", "--workers", "1", "--servers", "2"});
  CHECK(servers_beside(on_gpus) == 2);
  for (const std::vector<const char*>& wrong : std::vector<std::vector<const char*>>{
           {"--strategies", "parameter_server", "--servers", "0"},
           {"--strategies", "parameter_server", "--staleness", "-1"},
           {"--strategies", "parameter_server", "--staleness", "some"},
           {"--strategies", "parameter_server,parameter_server"},
           {"--strategies", "parameter_server", "--workers", "1"},
           {"--servers", "2"},
           {"--staleness", "none"}}) {
    CHECK_THROWS_AS(parse(wrong), InputError);
  }
}

namespace {

std::vector<std::string> replayed(const TemporaryFolder& folder) {
  return lockstep::testing::replay(folder, {"--steps", "1000", "--strategies", "parameter_server",
                                            "--staleness", "none", "--silence", "8"});
}

bool measures(const TemporaryFolder& folder) {
  const std::string file = visit_file(folder.file("out"));
  return std::filesystem::exists(file) && !read_visit(file).done.empty();
}

void check_named(MeasureProcess& process, const std::string& culprit) {
  CHECK(process.exit_code() == 3);
  INFO(process.errors());
  CHECK(process.one_error_line());
  CHECK_THAT(process.errors(), Contains(culprit));
}

}  // namespace

TEST_CASE("A server or worker that dies or hangs is named, and all end") {
  const TemporaryFolder of_server, of_worker, of_hung, of_hung_worker;
  MeasureProcess server(of_server, replayed(of_server)), worker(of_worker, replayed(of_worker)),
      hung(of_hung, replayed(of_hung)), hung_worker(of_hung_worker, replayed(of_hung_worker));
  wait_for("pieces", [&] {
    return measures(of_server) && measures(of_worker) && measures(of_hung) &&
           measures(of_hung_worker);
  });
  kill(lockstep::testing::wait_for_worker(server.pid(), 2), SIGKILL);
  kill(lockstep::testing::wait_for_worker(worker.pid(), 1), SIGKILL);
  kill(lockstep::testing::wait_for_worker(hung.pid(), 2), SIGSTOP);
  kill(lockstep::testing::wait_for_worker(hung_worker.pid(), 0), SIGSTOP);
  check_named(server, "rank 2 was killed by signal 9");
  check_named(worker, "rank 1 was killed by signal 9");
  check_named(hung, "rank 2 has not moved for 8 s (it is stopped)");
  check_named(hung_worker, "rank 0 has not moved for 8 s (it is stopped)");
  const std::vector<Run> kept = read_runs(of_server.file("out/runs.json"));
  const auto served = std::ranges::find_if(
      kept, [](const Run& run) { return run.strategy.kind == "parameter_server"; });
  REQUIRE(served != kept.end());
  CHECK_FALSE(served->strategy.staleness);
  REQUIRE(served->servers);
  CHECK(served->servers->throughput > 0);
  CHECK(served->servers->traffic.size() == 3);
  CHECK(served->servers->traffic[2].in == Bytes{20'000});
}

TEST_CASE("Without a launcher of ours a dead server is named by every worker") {
  const TemporaryFolder folder;
  int port = 0;
  close(listen_on("127.0.0.1", port));
  const std::vector<std::string> words = replayed(folder);
  std::vector<std::unique_ptr<MeasureProcess>> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    const lockstep::testing::Variables variables{
        {"RANK", std::to_string(rank)},       {"WORLD_SIZE", "3"},
        {"LOCAL_RANK", std::to_string(rank)}, {"LOCAL_WORLD_SIZE", "3"},
        {"MASTER_ADDR", "127.0.0.1"},         {"MASTER_PORT", std::to_string(port)},
        {"OMP_WAIT_POLICY", "passive"}};
    ranks.push_back(
        std::make_unique<MeasureProcess>(folder, words, variables, "rank" + std::to_string(rank)));
  }
  wait_for("pieces", [&] { return measures(folder); });
  ranks[2]->signal(SIGKILL);
  check_named(*ranks[0], "rank 2 has not answered");
  check_named(*ranks[1], "rank 2 has not answered");
}

}  // namespace lockstep::runner
