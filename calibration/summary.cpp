#include "calibration/summary.h"

#include <fmt/core.h>

#include "sim/collectives/bus_bandwidth.h"

namespace lockstep {
namespace {

std::string profiles(const Calibration& calibration) {
  std::string text = fmt::format("\n  {:<14} {:>5} {:>6} {:>6} {:>11} {:>11} {:>10}\n", "model",
                                 "batch", "beside", "mode", "step", "parameters", "processes");
  for (const Profile& p : calibration.profiles) {
    text += fmt::format("  {:<14} {:>5} {:>6} {:>6} {:>11} {:>11} {:>8.1f} %\n", p.model, p.batch,
                        p.beside, p.graph ? "graph" : "eager", to_string(p.step),
                        to_string(parameter_bytes(p)), p.spread_between_processes * 100);
  }
  return text;
}

std::string collectives(const Calibration& calibration) {
  if (calibration.collectives.empty()) return "";
  const auto link = link_bandwidth(calibration.origin.machine);
  std::string text = fmt::format("\n  {:<14} {:<8} {:>3} {:>22} {:>22}  {}\n", "collective",
                                 "backend", "n", "smallest", "largest", "bus bandwidth there");
  for (const CollectiveTable& t : calibration.collectives) {
    const auto end = [](const CollectivePoint& point) {
      return to_string(point.bytes) + " " + to_string(point.p50);
    };
    text += fmt::format("  {:<14} {:<8} {:>3} {:>22} {:>22}  {}\n", t.collective, t.backend,
                        t.workers, end(t.points.front()), end(t.points.back()),
                        describe_bus(bus_bandwidth(t, t.points.back()), link));
  }
  return text;
}

}  // namespace

std::string summary(const Calibration& calibration) {
  const Machine& machine = calibration.origin.machine;
  std::string text =
      fmt::format("Calibration {}: {}{}, {} cores\n", calibration.id,
                  machine.gpus.empty() ? "" : machine.host + ", ", machine.cpu, machine.cores);
  text += profiles(calibration) + collectives(calibration);
  const InterferenceFit& interference = calibration.interference;
  text += fmt::format(
      "\n  compute beside a collective that waits x{:.3f}, that transfers x{:.3f}; the collective "
      "beside compute x{:.3f}, and {:.3f} ms\n",
      interference.waiting, interference.transferring, interference.collective_beside_compute,
      interference.wait_beside_compute.seconds() * 1e3);
  for (const CoreSlowdown& c : calibration.cores) {
    text += fmt::format("  {} active workers of {} threads: each x{:.2f}\n", c.active, c.threads,
                        c.slowdown);
  }
  if (calibration.origin.machine.gpus.empty()) {
    text += fmt::format("  drift: steps follow the reference kernel to the power of {:.2f}\n",
                        calibration.drift_exponent);
  }
  text += fmt::format("  noise: {:.1f} % between processes, {:.1f} % between steps\n",
                      calibration.noise.process * 100, calibration.noise.step * 100);
  return text;
}

}  // namespace lockstep
