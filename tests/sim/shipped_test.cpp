// Every scenario that ships can be asked.
#include <filesystem>

#include "sim/simulate.h"
#include "tests/catch.h"
#include "tests/synthetic.h"

namespace lockstep {
namespace {

TEST_CASE("shipped scenarios are read and answered", "[shipped]") {
  const std::filesystem::path root = LOCKSTEP_SOURCE_DIR;
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root / "scenarios")) {
    if (entry.path().extension() != ".yaml") continue;
    INFO(entry.path());
    Scenario scenario = read_scenario(entry.path().string());
    ++read;
    // Only `make demo` makes the calibration of its scenarios; cores that were not measured answer
    // for it.
    const bool demo = scenario.calibration.find("/build/demo/") != std::string::npos;
    if (demo) scenario.model = "two_layers";
    const Prediction prediction =
        simulate(scenario, demo ? cpu_calibration() : read_calibration(scenario.calibration));
    REQUIRE(prediction.points.size() == scenario.workers.size());
    for (const ResultPoint& point : prediction.points) {
      CHECK(point.throughput > 0);
      CHECK(point.breakdown.step() > Time{});
    }
  }
  CHECK(read > 0);
}

}  // namespace
}  // namespace lockstep
