#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/scenario/scenario.h"
#include "tests/catch.h"

namespace lockstep {
namespace {

Scenario with(const std::string& strategy) {
  return parse_scenario(
      "name: a\ncalibration: c.json\nmodel: m\nbatch_per_worker: 4\nworkers: [2]\n"
      "strategy: {kind: parameter_server" +
          strategy + "}\n",
      "s.yaml");
}

TEST_CASE("a parameter server has servers and a bound on staleness", "[scenario]") {
  const StrategyOptions usual = with("").strategy;
  CHECK(usual.servers == 1);
  CHECK(usual.staleness == 0);
  CHECK(usual.server_rate == Bandwidth{});
  const StrategyOptions given = with(", servers: 3, staleness: 2, server_rate: 4GB/s").strategy;
  CHECK(given.servers == 3);
  CHECK(given.staleness == 2);
  CHECK(given.server_rate == Bandwidth{4'000'000'000});
  CHECK_FALSE(with(", staleness: none").strategy.staleness);
}

TEST_CASE("what no parameter server can be is refused with its place", "[scenario]") {
  CHECK_THROWS_WITH(with(", servers: 0"), Contains("s.yaml:6:") && Contains("strategy.servers"));
  CHECK_THROWS_WITH(with(", staleness: -1"), Contains("s.yaml:6:") && Contains("is no bound"));
  CHECK_THROWS_WITH(with(", staleness: free"), Contains("is no bound") && Contains("none, 0"));
  CHECK_THROWS_WITH(with(", staleness: 1.5"), Contains("is no bound"));
  CHECK_THROWS_WITH(with(", server_rate: 0GB/s"), Contains("must be above zero"));
  CHECK_THROWS_WITH(with(", server_rate: 4"), Contains("strategy.server_rate"));
  CHECK_THROWS_WITH(with(", bucket_cap: 4MiB"), Contains("unknown key"));
}

}  // namespace
}  // namespace lockstep
