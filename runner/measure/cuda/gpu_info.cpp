#include "runner/measure/cuda/gpu_info.h"

#include <nccl.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <sstream>

#include "runner/measure/cuda/check.h"

namespace lockstep::runner {
namespace {

/// What a command prints; "" when it cannot be run.
std::string output_of(const char* command) {
  const auto close = [](std::FILE* pipe) { pclose(pipe); };
  const std::unique_ptr<std::FILE, decltype(close)> pipe(popen(command, "r"), close);
  if (!pipe) return "";
  std::string text;
  std::array<char, 4096> part{};
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe.get())) {
    text.append(part.data(), got);
  }
  return text;
}

/// The fields of a line, blanks at their ends removed.
std::vector<std::string> split_csv(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, ',');) {
    const auto first = field.find_first_not_of(' ');
    const auto last = field.find_last_not_of(" \r");
    fields.push_back(first == std::string::npos ? "" : field.substr(first, last - first + 1));
  }
  return fields;
}

std::string version_text(int major, int minor) {
  return fmt::format("{}.{}", major, minor);
}

}  // namespace

std::vector<GpuInfo> query_gpus() {
  std::istringstream lines(output_of(
      "nvidia-smi --query-gpu=name,uuid,clocks.sm,power.draw,clocks_throttle_reasons.active "
      "--format=csv,noheader,nounits 2>/dev/null"));
  std::vector<GpuInfo> gpus;
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> fields = split_csv(line);
    if (fields.size() != 5) continue;
    gpus.push_back({.name = fields[0],
                    .uuid = fields[1],
                    .sm_clock_mhz = std::atoi(fields[2].c_str()),
                    .power_w = std::atof(fields[3].c_str()),
                    .throttle = fields[4]});
  }
  return gpus;
}

std::string driver_version() {
  std::istringstream lines(
      output_of("nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null"));
  std::string version;
  std::getline(lines, version);
  return version;
}

std::string describe_links(const std::string& topology_matrix) {
  std::set<std::string> kinds;
  std::istringstream lines(topology_matrix);
  std::string line;
  std::size_t gpus = 0;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word.find("GPU") == std::string::npos) continue;
    if (gpus == 0) {  // the header names the columns
      do {
        gpus += word.find("GPU") != std::string::npos && word.back() >= '0' && word.back() <= '9';
      } while (words >> word);
      continue;
    }
    for (std::size_t column = 0; column < gpus && words >> word; ++column) {
      if (word != "X") kinds.insert(word);
    }
  }
  if (kinds.size() == 1 && kinds.begin()->starts_with("NV")) {
    return fmt::format("NVLink, {} links a pair", kinds.begin()->substr(2));
  }
  std::string text;
  for (const std::string& kind : kinds) text += (text.empty() ? "" : ", ") + kind;
  return text;
}

std::string query_links() {
  return describe_links(output_of("nvidia-smi topo -m 2>/dev/null"));
}

std::string nccl_version() {
  int code = 0;
  if (ncclGetVersion(&code) != ncclSuccess) return "";
  return fmt::format("{}.{}.{}", code / 10000, code % 10000 / 100, code % 100);
}

std::string cuda_version() {
  int code = 0;
  check(cudaRuntimeGetVersion(&code), "asking for CUDA's version");
  return version_text(code / 1000, code % 1000 / 10);
}

}  // namespace lockstep::runner
