#include "runner/measure/origin.h"

#include <fmt/format.h>
#include <sched.h>
#include <torch/version.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <fstream>

#include "runner/communicators/gloo.h"

namespace lockstep::runner {

namespace {

constexpr std::array kVariables{
    "CUDA_VISIBLE_DEVICES", "GLOO_SOCKET_IFNAME", "MKL_NUM_THREADS", "NCCL_ALGO",
    "NCCL_MAX_NCHANNELS",   "NCCL_NVLS_ENABLE",   "NCCL_PROTO",      "NCCL_P2P_DISABLE",
    "NCCL_SOCKET_IFNAME",   "OMP_NUM_THREADS",
};

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

void bind_to_cores(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &set);
  sched_setaffinity(0, sizeof set, &set);
}

Origin make_origin(const std::string& command, int cores) {
  if (cores == 0) cores = static_cast<int>(usable_cores().size());
  Origin origin;
  origin.machine.cpu = cpu_name();
  origin.machine.cores = cores;
  origin.machine.host =
      fmt::format("{} core{} of {}", cores, cores == 1 ? "" : "s", origin.machine.cpu);
  origin.machine.links = "loopback";
  origin.software.lockstep = LOCKSTEP_VERSION;
  origin.software.torch = TORCH_VERSION;
  origin.software.gloo = gloo_version();
  for (const char* name : kVariables) {
    if (const char* value = std::getenv(name)) origin.environment[name] = value;
  }
  origin.command = command;
  origin.date = utc_now();
  return origin;
}

std::string utc_now(bool compact) {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  const char* format = compact ? "%Y%m%d-%H%M%S" : "%Y-%m-%dT%H:%M:%SZ";
  return {text.data(), std::strftime(text.data(), text.size(), format, &utc)};
}

}  // namespace lockstep::runner
