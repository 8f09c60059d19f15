#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/cli/process.h"

using namespace lockstep::testing;

namespace {

const std::string kRing = "collective all_reduce --algorithm ring --ranks 4 --bytes 64MB ";

TEST_CASE("a ring all-reduce as a table") {
  const Finished table = lockstep_command(kRing + "--bandwidth 1GB/s --latency 5us");
  CHECK(table.exit_code == 0);
  CHECK(table.err.empty());
  CHECK_THAT(table.out, Contains("all_reduce by ring among 4 ranks; a rank's array: 61.0 MiB, in 4 "
                                 "chunks of 15.3 MiB"));
  CHECK_THAT(table.out, Contains("step  from  to  chunks      size      is"));
  // 6 x (5 us + 16 ms).
  CHECK_THAT(table.out, Contains("6 steps, 24 messages"));
  CHECK_THAT(table.out,
             Contains("takes 96.0 ms; by formula 96.0 ms: (n-1) (2a + 2 S/n/B + S/n/R)"));
  CHECK_THAT(table.out, Contains("bus bandwidth 1.00 GB/s"));
  CHECK_THAT(table.out, Contains("Next: "));

  const Finished untimed = lockstep_command(kRing);
  CHECK(untimed.exit_code == 0);
  CHECK_THAT(untimed.out, !Contains("start") && !Contains("takes"));
}

TEST_CASE("many messages are told by step, and thousands of ranks in a tree are quick") {
  const Finished many = lockstep_command(
      "collective broadcast --algorithm tree --ranks 2000 --root 17 --bytes 1MB --bandwidth 1GB/s");
  CHECK(many.exit_code == 0);
  CHECK_THAT(many.out, Contains("step  messages"));
  CHECK(lockstep_command("collective broadcast --algorithm tree --ranks 40000 --bytes 1MB")
            .exit_code == 0);
  CHECK_THAT(many.out, Contains("11 steps, 1999 messages"));
}

TEST_CASE("algorithms side by side") {
  const Finished compared = lockstep_command(
      "collective all_reduce --ranks 8 --per-host 4 --bytes 8MB --bandwidth 1GB/s "
      "--host-bandwidth 10GB/s");
  CHECK(compared.exit_code == 0);
  for (const char* name : {"linear", "tree", "ring", "gloo_ring", "recursive_doubling",
                           "halving_doubling", "hierarchical", "double_tree"}) {
    CHECK_THAT(compared.out, Contains(name));
  }
}

TEST_CASE("a schedule as JSON and as a trace") {
  const TemporaryFolder folder;
  const Finished written =
      lockstep_command(kRing + "--bandwidth 1GB/s --json " + folder.file("s.json") + " --trace " +
                       folder.file("t.json"));
  REQUIRE(written.exit_code == 0);
  CHECK_THAT(written.out, Contains("Next: lockstep plot"));
  const auto schedule = nlohmann::json::parse(slurp(folder.file("s.json")));
  CHECK(schedule.at("kind").get<std::string>() == "collective");
  CHECK(schedule.at("root").is_null());
  CHECK(schedule.at("time_ns").get<std::int64_t>() == 96'000'000);
  CHECK(schedule.at("chunks").get<std::vector<int>>() == std::vector<int>(4, 16'000'000));
  const auto& rows = schedule.at("messages").at("rows");
  REQUIRE(rows.size() == 24);
  // Step 1: rank 0 passes chunk 3 on, which rank 1 adds.
  CHECK(rows.at(4).dump() == "[1,0,1,3,1,16000000,true,16000000,32000000]");
  const auto trace = nlohmann::json::parse(slurp(folder.file("t.json")));
  std::size_t spans = 0, arrows = 0;
  for (const auto& event : trace.at("traceEvents")) {
    spans += event.at("ph").get<std::string>() == "X" ? 1 : 0;
    arrows += event.at("ph").get<std::string>() == "f" ? 1 : 0;
  }
  CHECK(spans == 48);
  CHECK(arrows == 24);
}

TEST_CASE("a collective that cannot be is refused in one line") {
  const auto refused = [](const std::string& arguments) {
    const Finished finished = lockstep_command("collective " + arguments);
    INFO(arguments);
    CHECK(finished.exit_code == 2);
    CHECK(finished.out.empty());
    CHECK(finished.one_error_line());
    return finished.err;
  };
  CHECK_THAT(refused("allreduce --ranks 4 --bytes 1MB"),
             Contains("'allreduce' is no collective; one of broadcast, scatter"));
  CHECK_THAT(refused("gather --algorithm ring --ranks 4 --bytes 1MB"),
             Contains("--algorithm: 'ring' is no algorithm of gather; one of linear, tree"));
  CHECK_THAT(refused("gather --algorithm tree --ranks 4 --bytes 1MB --root 4"),
             Contains("there is no rank 4; with 4 ranks the last is 3"));
  CHECK_THAT(refused("all_reduce --algorithm ring --ranks 4 --bytes 1MB --root 0"),
             Contains("--root: all_reduce has no root"));
  CHECK_THAT(refused("all_reduce --algorithm hierarchical --ranks 4 --bytes 1MB"),
             Contains("--per-host"));
  CHECK_THAT(refused("all_reduce --ranks 4 --bytes 1MB --per-host 8"), Contains("at most 4"));
  CHECK_THAT(refused("all_reduce --algorithm ring --ranks 4 --bytes 1MB --segment 4kB"),
             Contains("ring has no segments"));
  CHECK_THAT(refused("all_reduce --ranks 4 --bytes 1MB --latency 5us"),
             Contains("--latency: there are no times without a bandwidth"));
  CHECK_THAT(refused("all_reduce --ranks 4 --bytes 1MB --json x.json"), Contains("--algorithm"));
  CHECK_THAT(refused("all_reduce --algorithm ring --ranks 4096 --bytes 1MB"),
             Contains("more than 50000 messages"));
  CHECK_THAT(refused("all_to_all --algorithm linear --ranks 65535 --bytes 1MB"),
             Contains("more than 50000 messages"));
  CHECK_THAT(refused("broadcast --algorithm linear --ranks 40000 --bytes 1MB --bandwidth 1GB/s"),
             Contains("too long to be timed; take fewer, or leave out the bandwidth"));
  CHECK_THAT(refused("all_reduce --algorithm ring --ranks 4 --bytes 1001B"),
             Contains("no whole elements"));
  CHECK_THAT(refused("all_reduce --algorithm ring --ranks 4 --bytes 1MB --bandwidth 1B/s "
                     "--latency 100000s"),
             Contains("longer than a week"));
  for (const char* arguments :
       {"", "all_reduce", "all_reduce --ranks 4", "all_reduce --bytes 1MB",
        "all_reduce --ranks 0 --bytes 1MB", "all_reduce --ranks -3 --bytes 1MB",
        "all_reduce --ranks 70000 --bytes 1MB", "all_reduce --ranks x --bytes 1MB",
        "all_reduce --ranks 4 --bytes 64", "all_reduce --ranks 4 --bytes -1MB",
        "all_reduce --ranks 4 --bytes 1MB --per-host 0",
        "all_reduce --ranks 4 --bytes 1MB --bandwidth 0GB/s",
        "all_reduce --ranks 4 --bytes 1MB --bandwidth 9TB/s",
        "all_reduce --ranks 4 --bytes 1MB --bandwidth fast",
        "all_reduce --algorithm ring --ranks 4 --bytes 1MB --json missing/x.json"}) {
    refused(arguments);
  }
}

TEST_CASE("one rank, and no bytes, have nothing to send") {
  for (const char* arguments : {"--ranks 1 --bytes 1MB", "--ranks 4 --bytes 0B"}) {
    const Finished finished = lockstep_command(
        std::string("collective all_reduce --algorithm ring --bandwidth 1GB/s ") + arguments);
    CHECK(finished.exit_code == 0);
    CHECK_THAT(finished.out, Contains("nothing to send") && Contains("0 messages"));
  }
}

}  // namespace
