// What the simulator says about two small scenarios, to the last character.
#include <filesystem>
#include <string>

#include "sim/report/table.h"
#include "sim/report/trace.h"
#include "sim/simulate.h"
#include "tests/golden.h"
#include "tests/synthetic.h"

namespace lockstep {
namespace {

std::string data(const std::string& name) {
  return std::string(LOCKSTEP_SOURCE_DIR) + "/tests/data/" + name;
}

/// What a writer of records puts into a file.
template <typename Record, typename Write>
std::string written(const Record& record, const Write& write) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / "lockstep_golden_test.json";
  write(record, file.string());
  const std::string text = file_text(file.string());
  std::filesystem::remove(file);
  return text;
}

TEST_CASE("the synthetic calibrations on disk are those of the code", "[golden]") {
  check_golden("tests/data/gpu.json", written(gpu_calibration(), write_calibration));
  check_golden("tests/data/cpu.json", written(cpu_calibration(), write_calibration));
}

TEST_CASE("reports of a GPU scenario", "[golden]") {
  const Scenario scenario = read_scenario(data("gpu.yaml"));
  const Calibration calibration = read_calibration(scenario.calibration);
  const Prediction prediction = simulate(scenario, calibration);
  check_golden("tests/golden/gpu.txt", to_table(prediction));
  check_golden("tests/golden/gpu.csv", to_csv(prediction));
  check_golden("tests/golden/gpu.json", written(prediction, write_result));
}

TEST_CASE("the trace of one step", "[golden]") {
  Scenario scenario = read_scenario(data("gpu.yaml"));
  scenario.noise = false;
  scenario.stragglers.resize(1);
  scenario.stragglers[0].worker = 1;
  scenario.stragglers[0].slowdown = Factor::of(1.2);
  const Timeline step = simulate_step(scenario, read_calibration(scenario.calibration), 2);
  const NamedTimeline named[] = {{"simulated", step}};
  check_golden("tests/golden/gpu_trace.json", to_chrome_trace(named));
}

TEST_CASE("reports of a CPU scenario", "[golden]") {
  const Scenario scenario = read_scenario(data("cpu_strong.yaml"));
  const Prediction prediction = simulate(scenario, read_calibration(scenario.calibration));
  check_golden("tests/golden/cpu_strong.txt", to_table(prediction));
}

}  // namespace
}  // namespace lockstep
