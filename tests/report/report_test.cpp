#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "sim/report/table.h"
#include "sim/report/trace.h"
#include "tests/catch.h"

namespace lockstep {
namespace {

Span span(std::uint32_t worker, Lane lane, const std::string& name, Time start, Time end) {
  Span result;
  result.worker = worker;
  result.lane = lane;
  result.kind = TaskKind::forward;
  result.name = name;
  result.start = start;
  result.end = end;
  return result;
}

TEST_CASE("a trace is JSON with a process for every worker and a thread for every lane",
          "[trace]") {
  const NamedTimeline timelines[] = {
      {"simulated",
       {span(0, Lane::compute, "conv \"1\"\n\xff", Time::picoseconds(1'234'567),
             Time::picoseconds(2'234'568)),
        span(1, Lane::host, "conv", {}, Time::microseconds(1))}},
      {"measured", {span(0, Lane::compute, "conv", {}, Time::microseconds(3))}}};
  const std::string text = to_chrome_trace(timelines);
  const nlohmann::json trace = nlohmann::json::parse(text);
  std::set<std::string> processes;
  std::set<int> pids;
  int spans = 0;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("name") == "process_name") {
      processes.insert(event.at("args").at("name").get<std::string>());
    }
    if (event.at("ph") != "X") continue;
    ++spans;
    pids.insert(event.at("pid").get<int>());
  }
  CHECK(processes ==
        std::set<std::string>{"simulated worker 0", "simulated worker 1", "measured worker 0"});
  CHECK(pids == std::set<int>{0, 1, 2});
  CHECK(spans == 3);
  // Microseconds, with every picosecond.
  CHECK_THAT(text, Contains("\"ts\":1.234567,\"dur\":1.000001"));
  CHECK_THAT(text, Contains(R"("name":"thread_name","args":{"name":"compute"})"));
}

TEST_CASE("a trace of nothing is still a trace", "[trace]") {
  CHECK(nlohmann::json::parse(to_chrome_trace({})).at("traceEvents").empty());
}

Prediction small_prediction() {
  Prediction prediction;
  prediction.scenario = "a, \"b\"";
  prediction.model = "vgg11";
  prediction.calibration = "here";
  ResultPoint point;
  point.workers = 2;
  point.batch_per_worker = 32;
  point.strategy = "ddp";
  point.step = {Time::milliseconds(10), Time::milliseconds(9), Time::milliseconds(10),
                Time::milliseconds(12)};
  point.uncertainty = {0.03, 0, 0.04};
  point.basis = Basis::extrapolated;
  point.throughput = 6400;
  point.speedup = 1.8;
  point.efficiency = 0.9;
  point.breakdown.compute = Time::milliseconds(8);
  point.breakdown.exposed = Time::milliseconds(2);
  point.host_busy = 0.95;
  point.host_bound = true;
  prediction.points = {point};
  return prediction;
}

TEST_CASE("a table says what, how sure, and where the time goes", "[table]") {
  const std::string table = to_table(small_prediction());
  CHECK_THAT(table, StartsWith("a, \"b\"\nvgg11, weak scaling, calibration here\n"));
  // 3 % and 4 % make 5 %.
  CHECK_THAT(table, Contains("2     32       ddp    10.00  9.00  10.00  12.00  5.0%"));
  CHECK_THAT(table, Contains("6400      1.80         90%  extrapolated\n"));
  CHECK_THAT(table, Contains("95%      host\n"));
}

TEST_CASE("CSV says the same nanoseconds as JSON, and they add up", "[csv]") {
  Prediction prediction = small_prediction();
  // 0.4 + 0.4 + 0.4 ns: 0, 1, 0 rather than three times 0.
  Breakdown& parts = prediction.points[0].breakdown;
  parts = {};
  parts.compute = parts.exposed = parts.waiting = Time::picoseconds(400);
  const Breakdown rounded = in_whole_nanoseconds(parts);
  CHECK_THAT(to_csv(prediction), Contains(std::to_string(rounded.compute.ns()) + "," +
                                          std::to_string(rounded.exposed.ns()) + "," +
                                          std::to_string(rounded.waiting.ns()) + ",0,0,0,0,0.95"));
  CHECK(rounded.step() == Time::nanoseconds(1));
}

TEST_CASE("CSV quotes what needs it and has a cell for every column", "[csv]") {
  const std::string csv = to_csv(small_prediction());
  const std::string head = csv.substr(0, csv.find('\n'));
  const std::string row = csv.substr(csv.find('\n') + 1);
  CHECK_THAT(row, StartsWith("\"a, \"\"b\"\"\",vgg11,here,weak,2,32,ddp,10000000,9000000,"));
  // The name holds one comma of its own.
  CHECK(std::count(row.begin(), row.end(), ',') == std::count(head.begin(), head.end(), ',') + 1);
}

}  // namespace
}  // namespace lockstep
